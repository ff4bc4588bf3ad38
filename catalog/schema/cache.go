package schema

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"

	lru "github.com/hashicorp/golang-lru/v2"
)

// A Cache remembers finished tools by their content: the same bytes under the same
// options make the same tool. It may be used from any goroutine.
type Cache struct {
	tools *lru.Cache[[sha256.Size]byte, cached]
}

type cached struct {
	tool Tool
	ok   bool
}

// NewCache returns a cache of that many tools, at least one.
func NewCache(size int) *Cache {
	tools, _ := lru.New[[sha256.Size]byte, cached](max(size, 1)) // fails for less than one
	return &Cache{tools: tools}
}

// Definition does what the function of that name does.
func (c *Cache) Definition(raw json.RawMessage, o Options) (Tool, bool) {
	key := keyOf(raw, o)
	if known, ok := c.tools.Get(key); ok {
		return known.tool, known.ok
	}
	tool, ok := Definition(raw, o)
	c.tools.Add(key, cached{tool, ok})
	return tool, ok
}

func keyOf(raw json.RawMessage, o Options) (key [sha256.Size]byte) {
	h := sha256.New()
	writePart(h, []byte{byte(o.Mode), bit(o.DropOutput), bit(o.IgnoreHeaders)})
	writePart(h, []byte(o.Public))
	for _, text := range []*string{o.Title, o.Description} {
		if text == nil {
			writePart(h, []byte{0})
			continue
		}
		writePart(h, append([]byte{1}, *text...))
	}
	writePart(h, o.Meta)
	writePart(h, raw)
	h.Sum(key[:0])
	return key
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// writePart writes the length first, so that no two sets of parts look the same.
func writePart(h hash.Hash, part []byte) {
	var length [8]byte
	binary.LittleEndian.PutUint64(length[:], uint64(len(part)))
	h.Write(length[:])
	h.Write(part)
}
