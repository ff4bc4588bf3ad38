// Package listing knows what one server listed last, as raw bytes.
package listing

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// A Kind is one of the things that servers list.
type Kind uint8

// The kinds.
const (
	Tools Kind = iota
	kinds
)

// member is the member of a list result that holds the items of each kind.
var member = [kinds]string{Tools: "tools"}

// Limits on what one server may list, all pages together.
const (
	MaxItems = 10_000
	MaxBytes = 32 << 20
)

// An Item is one entry of a list.
type Item struct {
	Name string          // the raw name; "" if it has none that is a string
	Raw  json.RawMessage // as it came
}

// A Listing is what one server listed last. It is never changed once made.
type Listing struct {
	Version    string          // the protocol version that was agreed
	ServerInfo json.RawMessage // as the server gave it; nil if it gave none
	FetchedAt  time.Time
	TTL        time.Duration // how long the server itself calls its lists fresh; 0: it did not say
	Private    bool          // the server calls its lists private to us
	Notes      []string      // what was odd about the lists, for people
	items      [kinds][]Item
	hash       [sha256.Size]byte
}

// Items returns the entries of a kind in the server's order.
func (l *Listing) Items(k Kind) []Item { return l.items[k] }

// Hash identifies the content: equal for listings with the same entries.
func (l *Listing) Hash() [sha256.Size]byte { return l.hash }

// A Builder gathers the pages of a server's lists.
type Builder struct {
	Listing
	bytes int
	count int
}

// ErrTooMuch is returned for lists beyond MaxItems or MaxBytes.
var ErrTooMuch = fmt.Errorf("more than %d entries or %d bytes listed", MaxItems, MaxBytes)

// Add adds one page: the result of a list request. It returns the cursor of the next
// page, a JSON string, or nil if this was the last.
func (b *Builder) Add(k Kind, page json.RawMessage) (cursor json.RawMessage, err error) {
	if !jsonrpc.IsObject(page) {
		return nil, errors.New("the list result is no object")
	}
	list := jsonrpc.Get(page, member[k])
	if !jsonrpc.IsArray(list) {
		return nil, fmt.Errorf("the list result has no list %q", member[k])
	}
	for raw := range jsonrpc.Elements(list) {
		b.count++
		if b.bytes += len(raw); b.count > MaxItems || b.bytes > MaxBytes {
			return nil, ErrTooMuch
		}
		name, _ := jsonrpc.Unquote(jsonrpc.Get(raw, "name"))
		b.items[k] = append(b.items[k], Item{Name: name, Raw: bytes.Clone(raw)})
	}
	var ttl int64
	if json.Unmarshal(jsonrpc.Get(page, "ttlMs"), &ttl) == nil && ttl > 0 {
		if d := time.Duration(ttl) * time.Millisecond; b.TTL == 0 || d < b.TTL {
			b.TTL = d
		}
	}
	if scope, _ := jsonrpc.Unquote(jsonrpc.Get(page, "cacheScope")); scope == "private" {
		b.Private = true
	}
	if next := jsonrpc.Get(page, "nextCursor"); jsonrpc.IsString(next) {
		return bytes.Clone(next), nil // an empty string is a cursor like any other
	}
	return nil, nil
}

// Done returns the listing.
func (b *Builder) Done() *Listing {
	l := b.Listing
	l.hash = l.sum()
	return &l
}

func (l *Listing) sum() (sum [sha256.Size]byte) {
	h := sha256.New()
	var size [8]byte
	for _, items := range l.items {
		binary.LittleEndian.PutUint64(size[:], uint64(len(items)))
		h.Write(size[:])
		for _, item := range items {
			binary.LittleEndian.PutUint64(size[:], uint64(len(item.Raw)))
			h.Write(size[:])
			h.Write(item.Raw)
		}
	}
	h.Sum(sum[:0])
	return sum
}

// stored is the form in which a listing is kept in a file.
type stored struct {
	Format     int             `json:"format"`
	Key        string          `json:"key"`
	Version    string          `json:"version"`
	ServerInfo json.RawMessage `json:"server_info,omitempty"`
	FetchedAt  time.Time       `json:"fetched_at"`
	TTL        time.Duration   `json:"ttl"`
	Private    bool            `json:"private"`
	Notes      []string        `json:"notes,omitempty"`
	Tools      json.RawMessage `json:"tools"`
}

const format = 1

// Encode returns the listing for a file. key tells later whether it is still of use.
func (l *Listing) Encode(key string) []byte {
	list := []byte{'['}
	for i, item := range l.items[Tools] {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(list, item.Raw...)
	}
	// Marshal would compact and escape the raw list, so it is put in afterwards.
	head, err := json.Marshal(stored{format, key, l.Version, l.ServerInfo, l.FetchedAt, l.TTL, l.Private, l.Notes, json.RawMessage("0")})
	if err != nil { // the members above cannot fail to encode
		return nil
	}
	out := append(head[:len(head)-len("0}")], list...)
	return append(out, "]}"...)
}

// Decode reads what Encode wrote. It fails if the bytes are damaged or were encoded
// with another key.
func Decode(b []byte, key string) (*Listing, error) {
	if err := jsonrpc.Check(b); err != nil {
		return nil, fmt.Errorf("stored listing: %w", err)
	}
	var s stored
	if err := json.Unmarshal(b, &s); err != nil {
		return nil, fmt.Errorf("stored listing: %w", err)
	}
	if s.Format != format || s.Key != key {
		return nil, errors.New("stored listing: made by another version or for another configuration")
	}
	builder := Builder{Listing: Listing{Version: s.Version, ServerInfo: s.ServerInfo, FetchedAt: s.FetchedAt, TTL: s.TTL, Private: s.Private, Notes: s.Notes}}
	if _, err := builder.Add(Tools, append(append([]byte(`{"tools":`), s.Tools...), '}')); err != nil {
		return nil, fmt.Errorf("stored listing: %w", err)
	}
	return builder.Done(), nil
}
