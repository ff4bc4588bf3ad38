package stdio

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// How much may wait to be written before something else waits or is dropped.
const (
	roomForNotes   = 1 << 20  // notifications of calls
	roomForReplies = 8 << 20  // answers: their calls wait
	roomForAll     = 64 << 20 // answers to what is read without waiting
)

// An outbox has the lines that wait to be written. The client may read as slowly as it
// likes: what is held is bounded, and nobody waits who reads from it.
type outbox struct {
	ready chan struct{} // receives when there is something to do for run

	mu      sync.Mutex // guards what follows
	changed *sync.Cond // there is more room, or none is needed
	lines   []entry
	size    int  // bytes of lines, and of what is being written
	hurried bool // nobody waits for room any more
	last    bool // no line comes after those that are there
	broken  bool // the client cannot be written to
}

type entry struct {
	line     []byte
	progress *call // of whom the line is a progress; nil: it is none
}

func newOutbox() *outbox {
	o := &outbox{ready: make(chan struct{}, 1)}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// put adds a line, when no more than room bytes are there.
func (o *outbox) put(line []byte, room int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for o.size > room && !o.hurried && !o.broken {
		o.changed.Wait()
	}
	o.add(entry{line: line})
}

// note adds a notification of a call without waiting: a progress takes the place of
// the one before, another notification is dropped, when there is too much already.
func (o *outbox) note(from *call, progress bool, line []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	e := entry{line: line}
	if progress {
		e.progress = from
	}
	if o.size > roomForNotes {
		if !progress {
			return
		}
		o.dropProgress(from)
	}
	o.add(e)
}

// dropProgress drops the last progress of a call. It is sought from the end, where it
// is when the call says much.
func (o *outbox) dropProgress(from *call) {
	for i := len(o.lines) - 1; i >= 0; i-- {
		if o.lines[i].progress == from {
			o.size -= len(o.lines[i].line)
			o.lines = slices.Delete(o.lines, i, i+1)
			return
		}
	}
}

func (o *outbox) add(e entry) {
	if o.broken {
		return
	}
	o.lines = append(o.lines, e)
	o.size += len(e.line)
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.ready <- struct{}{}:
	default: // run has not yet looked since the last time
	}
}

// run writes lines until finish was called and all are written, or the client is gone.
func (o *outbox) run(w io.Writer) error {
	out := bufio.NewWriterSize(w, 32<<10)
	for range o.ready {
		lines, last := o.take()
		written := 0
		for _, e := range lines {
			if _, err := out.Write(e.line); err != nil {
				return o.fail(err)
			}
			written += len(e.line)
		}
		if err := out.Flush(); err != nil {
			return o.fail(err)
		}
		o.free(written)
		if last && len(lines) == 0 {
			return nil
		}
	}
	return nil
}

func (o *outbox) take() (lines []entry, last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	lines, o.lines = o.lines, nil
	if o.last && len(lines) > 0 {
		o.signal() // come back to see that there is nothing more
	}
	return lines, o.last
}

func (o *outbox) free(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.size -= n
	o.changed.Broadcast()
}

func (o *outbox) fail(err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.broken, o.lines = true, nil
	o.changed.Broadcast()
	return fmt.Errorf("stdio: write: %w", err)
}

// hurry lets go whoever waits for room.
func (o *outbox) hurry() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurried = true
	o.changed.Broadcast()
}

// finish waits until everything is written, but not longer than limit.
func (o *outbox) finish(written <-chan error, limit time.Duration) error {
	o.mu.Lock()
	o.last = true
	o.signal()
	o.mu.Unlock()
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case err := <-written:
		return err
	case <-late.C:
		return nil // whoever reads that slowly has stopped
	}
}
