// Package stdio speaks MCP on our own standard input and output, in both eras at once:
// a request that declares a version in _meta stands alone, the others share one
// session.
package stdio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/session"
)

// A Server answers the messages that a Front has checked.
type Server interface {
	Serve(ctx context.Context, r proxy.Request, s proxy.Stream)
}

// Options of a Front.
type Options struct {
	MaxRequestBytes int           // of a message; 0: 4 MiB
	Grace           time.Duration // for calls that run when the input ends; 0: 3 s
}

// A Front serves whoever started us.
type Front struct {
	// set by New, never changed
	server     Server
	table      *session.Table
	maxRequest int
	grace      time.Duration
}

// New returns a Front. The session of its client will be in table.
func New(server Server, table *session.Table, o Options) *Front {
	if o.MaxRequestBytes <= 0 {
		o.MaxRequestBytes = 4 << 20
	}
	if o.Grace <= 0 {
		o.Grace = 3 * time.Second
	}
	return &Front{server: server, table: table, maxRequest: o.MaxRequestBytes, grace: o.Grace}
}

var (
	errEnding    = errors.New("the client's connection is ending")
	errCancelled = errors.New("cancelled by the client")
)

// Run serves the client until in ends, out breaks or ctx ends; in is closed then if it
// can be. Calls that run are given a short time to be answered. A read or write that
// nothing can interrupt, as of a terminal, may go on when Run returns.
func (f *Front) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	sess, err := f.table.Create(access.Caller{}, "")
	if err != nil {
		return fmt.Errorf("stdio: %w", err)
	}
	defer f.table.Delete(sess.ID())
	defer sess.Release()
	// Calls outlive ctx: they are given time.
	calls, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	c := &conn{Front: f, session: sess, ctx: calls, out: newOutbox(), running: map[string]*call{}, left: make(chan struct{}, 1)}

	written := make(chan error, 1)
	go func() { written <- c.out.run(out) }()
	read := make(chan error, 1)
	go func() { read <- c.read(in) }()

	var broken error
	reading := true
	select {
	case err = <-read:
		reading = false
	case broken = <-written:
		err = broken
		cancel(errEnding) // nobody can hear an answer
	case <-ctx.Done():
	}
	c.drain(cancel)
	if broken == nil {
		err = errors.Join(err, c.out.finish(written, lastWords))
	}
	if closer, ok := in.(io.Closer); ok && reading {
		_ = closer.Close() // it serves to end the reading
		await(read, lastWords)
	}
	return err
}

// lastWords is how long a slow reader of our output has for what is left, and the
// reading to end.
const lastWords = time.Second

func await(done <-chan error, limit time.Duration) {
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}
