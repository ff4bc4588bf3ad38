package transport

import "io"

// A cutter takes the middle out of events that are too long, so that one of them does
// not end the stream that every call depends on. What is left is still longer than a
// message may be, and has the beginning and the end, where the id stands.
type cutter struct {
	r     io.Reader
	limit int // bytes of an event, line ends and field names included

	size    int    // bytes of this event
	line    int    // bytes of this line
	afterCR bool   // a line feed now belongs to the last line end
	cutting bool   // this event is being cut
	tail    []byte // the end of what was taken out
	out     []byte // what Read returns next
	raw     [4 << 10]byte
}

const maxTail = 128

func (c *cutter) Read(p []byte) (int, error) {
	for len(c.out) == 0 {
		n, err := c.r.Read(c.raw[:])
		c.out = c.out[:0]
		for _, b := range c.raw[:n] {
			c.feed(b)
		}
		if err != nil && len(c.out) == 0 {
			return 0, err
		}
	}
	n := copy(p, c.out)
	c.out = c.out[n:]
	return n, nil
}

func (c *cutter) feed(b byte) {
	end := b == '\n' || b == '\r'
	if second := b == '\n' && c.afterCR; second {
		c.afterCR = false
		if !c.cutting {
			c.out = append(c.out, b)
		}
		return
	}
	c.afterCR = b == '\r'
	blank := end && c.line == 0
	c.line++
	if end {
		c.line = 0
	}
	if blank {
		c.finish()
		c.out = append(c.out, b)
		return
	}
	if c.size++; c.size <= c.limit {
		c.out = append(c.out, b)
		return
	}
	c.cutting = true
	if end {
		return
	}
	if c.tail = append(c.tail, b); len(c.tail) == 2*maxTail {
		c.tail = append(c.tail[:0], c.tail[maxTail:]...)
	}
}

// finish ends an event, with the end of what was taken out as its last line.
func (c *cutter) finish() {
	if c.cutting {
		c.out = append(c.out, "\ndata: "...)
		c.out = append(append(c.out, c.tail...), '\n')
	}
	c.size, c.cutting, c.tail = 0, false, c.tail[:0]
}
