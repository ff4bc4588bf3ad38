// Package tokencost knows what a tool costs a model to read, in cl100k_base tokens.
//
// Everything is counted offline. Texts that look like special tokens are plain text.
package tokencost

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	lru "github.com/hashicorp/golang-lru/v2"
)

// A Counter counts, and remembers what it has counted by its content. Its methods may be
// called from any goroutine.
type Counter struct {
	counts *lru.Cache[[sha256.Size]byte, int]
}

// New returns a Counter that remembers the counts of so many tools, one at least.
func New(cacheSize int) *Counter {
	counts, err := lru.New[[sha256.Size]byte, int](max(cacheSize, 1))
	if err != nil {
		panic(err) // only a size below one is refused
	}
	return &Counter{counts: counts}
}

// Count returns the cost of a tool as it is listed. The error is that of ctx.
func (c *Counter) Count(ctx context.Context, publicName, description string, inputSchema json.RawMessage) (int, error) {
	text := appendTool(nil, publicName, description, inputSchema)
	key := sha256.Sum256(text)
	if n, ok := c.counts.Get(key); ok {
		return n, nil
	}
	n, err := count(ctx, text)
	if err != nil {
		return 0, err
	}
	c.counts.Add(key, n)
	return n, nil
}
