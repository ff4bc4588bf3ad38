package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/process"
)

// StdioOptions say what to run, and how.
type StdioOptions struct {
	Command    process.Command // without Stderr, its lines go to Log
	Secrets    []string        // are not logged when the server repeats them
	MaxMessage int             // bytes of one message; 0: 5 MiB
	Log        zerolog.Logger
}

// A StdioConn is a server in a process of our own, which may work for many callers at once.
type StdioConn struct {
	// set by StartStdio, never changed
	process *process.Process
	calls   *calls
	out     *outbox
	secrets []string
	max     int
	log     zerolog.Logger // says little of what a server may repeat for ever

	deaf   chan struct{} // closed when the server's output has ended
	done   chan struct{}
	all    sync.WaitGroup // our goroutines
	ending sync.Once
}

const (
	// lastWords is how long the output of a process that has ended is read: somebody who outlived it may hold the other end.
	lastWords = 500 * time.Millisecond
	// lastBreath is how long a process whose output has ended may take to end itself, so that it can be said how.
	lastBreath = 500 * time.Millisecond
)

// StartStdio starts a server. What it says outside of any call goes to h. The connection does not end with ctx.
func StartStdio(ctx context.Context, o StdioOptions, h jsonrpc.Sink) (*StdioConn, error) {
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if o.MaxMessage <= 0 {
		o.MaxMessage = defaultMaxMessage
	}
	if o.Command.Stderr == nil {
		o.Command.Stderr = func(line string) { o.Log.Info().Str("line", line).Msg("server says on stderr") }
	}
	child, err := process.Start(o.Command)
	if err != nil {
		return nil, err
	}
	c := &StdioConn{
		process: child,
		out:     newOutbox(child.Stdin),
		secrets: o.Secrets,
		max:     o.MaxMessage,
		log:     seldom(o.Log),
		deaf:    make(chan struct{}), done: make(chan struct{}),
	}
	c.calls = newCalls(new(atomic.Int64), h, c.respond, c.log)
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c.all.Go(c.out.run)
	c.all.Go(func() { c.read(ctx) })
	c.all.Go(func() {
		defer cancel()
		c.supervise()
	})
	return c, nil
}

// seldom lets a few warnings a minute through.
func seldom(log zerolog.Logger) zerolog.Logger {
	return log.Sample(zerolog.LevelSampler{WarnSampler: &zerolog.BurstSampler{Burst: 5, Period: time.Minute}})
}

// Call sends a request and returns its answer, of which every message that belongs to it has gone to s before. s may be nil.
// An error other than NotSent says that the request may have run.
func (c *StdioConn) Call(ctx context.Context, method string, p jsonrpc.Params, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	if ctx.Err() != nil {
		return jsonrpc.Reply{}, context.Cause(ctx)
	}
	k, err := c.calls.start(&p, s)
	if err != nil {
		return jsonrpc.Reply{}, err
	}
	buf := jsonrpc.NewBuffer()
	buf.B = appendRequest(buf.B, k.id, method, &p)
	l, err := c.out.put(buf)
	if err != nil {
		c.calls.end(k)
		return jsonrpc.Reply{}, err
	}
	reply, err := c.calls.wait(ctx, k)
	switch {
	case err == nil:
	case c.over(err):
		<-l.settled // at once: what has not been written never will be
		if !l.sent {
			return reply, &NotSent{Err: err}
		}
		return reply, unknownOutcome(err)
	case ctx.Err() != nil:
		// of what comes before the handshake nothing is taken back
		if !c.out.takeBack(l) && method != protocol.Initialize && method != protocol.Discover {
			c.cancel(k, err)
		}
	}
	return reply, err
}

// over reports whether err is the end of the connection, and not that of one call.
func (c *StdioConn) over(err error) bool {
	_, ended := errors.AsType[*endError](err)
	return ended || errors.Is(err, errClosed)
}

// cancel tells the server that nobody waits for k any more. It does not wait for that itself.
func (c *StdioConn) cancel(k *call, cause error) {
	buf := jsonrpc.NewBuffer()
	buf.B = appendCancel(buf.B, k.id, cause)
	c.out.put(buf) // a server that has gone needs no cancellation
}

// Notify sends a notification. It returns when the server can read it.
func (c *StdioConn) Notify(ctx context.Context, method string, params json.RawMessage) error {
	p := jsonrpc.NewParams(params)
	buf := jsonrpc.NewBuffer()
	buf.B = appendNotification(buf.B, method, &p)
	return c.out.deliver(ctx, buf)
}

// respond sends the answer to a request of the server.
func (c *StdioConn) respond(ctx context.Context, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, respondTimeout)
	defer cancel()
	buf := jsonrpc.NewBuffer()
	buf.B = append(buf.B, message...)
	return c.out.deliver(ctx, buf)
}

// Done is closed when the server has ended or the connection was closed. Close has still to be called.
func (c *StdioConn) Done() <-chan struct{} { return c.done }

// Err says how the server's process ended; nil while it runs.
func (c *StdioConn) Err() error { return c.process.Err() }

// StderrTail is the last of what the server wrote to its standard error. It may contain secrets of the server.
func (c *StdioConn) StderrTail() string { return c.process.StderrTail() }

// Close ends the calls that still run and the server, and returns, within six seconds, when nothing of either is left.
func (c *StdioConn) Close() error {
	c.end(errClosed)
	c.process.Stop()
	c.all.Wait()
	c.calls.close()
	return nil
}

// end ends every call.
func (c *StdioConn) end(err error) {
	c.ending.Do(func() {
		c.out.close() // now it is settled what the server can have read
		c.calls.fail(err)
		close(c.done)
	})
}

// An endError says that the server's process is of no use any more.
type endError struct{ how string }

func (e *endError) Error() string { return "the server's process " + e.how }

// supervise waits for the end of the process, or of its output or input, and ends what depends on it.
func (c *StdioConn) supervise() {
	how := ""
	select {
	case <-c.done:
		return
	case <-c.process.Done():
		wait(c.deaf, lastWords)
	case <-c.deaf:
		how = "closed its output"
		wait(c.process.Done(), lastBreath)
	case <-c.out.ended:
		how = "closed its input"
		wait(c.process.Done(), lastBreath)
		wait(c.deaf, lastBreath)
	}
	if err := c.process.Err(); err != nil {
		how = fmt.Sprintf("has ended (%v)", err)
	}
	c.end(&endError{how})
	c.process.Stop()
}

// wait waits for done, but not for ever.
func wait(done <-chan struct{}, longest time.Duration) {
	select {
	case <-done:
	case <-time.After(longest):
	}
}

// read takes what the server says until its output ends.
func (c *StdioConn) read(ctx context.Context) {
	defer close(c.deaf)
	lines := newLineReader(c.process.Stdout, c.max)
	for {
		buf := jsonrpc.NewBuffer()
		switch err := lines.next(buf); {
		case err == nil:
			c.line(ctx, buf)
		case err == errLongLine:
			c.calls.broken(buf.B, lines.tail, &TooLarge{c.max})
			buf.Release()
		case jsonrpc.Check(buf.B) == nil: // the last line, whole but for its end
			c.line(ctx, buf)
			return
		default:
			buf.Release()
			return
		}
	}
}

// line takes one line. It owns buf.
func (c *StdioConn) line(ctx context.Context, buf *jsonrpc.Buffer) {
	switch text := bytes.TrimSpace(bytes.TrimPrefix(buf.B, []byte("\xef\xbb\xbf"))); {
	case len(text) == 0:
		buf.Release()
	case text[0] == '{' || text[0] == '[':
		c.calls.receive(ctx, buf)
	default: // a banner, or a print that somebody forgot
		c.log.Warn().Str("line", excerpt(text, c.secrets)).Msg("line of the server that is no message skipped")
		buf.Release()
	}
}
