package transport

// Running is how many calls wait for a reply.
func (c *StdioConn) Running() int {
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	return len(c.calls.open)
}
