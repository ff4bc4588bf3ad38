package config

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// decodeOverrides reads tools: a mapping from raw names.
func decodeOverrides(v value) map[string]Override {
	entries, ok := v.entries()
	if !ok {
		return nil
	}
	out := make(map[string]Override, len(entries))
	for _, e := range entries {
		if strings.TrimSpace(e.key) == "" {
			e.errorf("a tool without a name")
		}
		o, ok := e.object()
		if !ok {
			continue
		}
		var override Override
		if v, there := o.get("name"); there {
			if s, ok := v.filled(); ok {
				override.Name = &s
			}
		}
		override.Title = o.optional("title")
		override.Description = o.optional("description")
		if v, there := o.get("meta"); there {
			override.Meta = decodeMeta(v)
		}
		o.close(nil)
		out[e.key] = override
	}
	return out
}

// optional is a text that may be absent.
func (o *object) optional(key string) *string {
	if v, there := o.get(key); there {
		if s, ok := v.text(); ok {
			return &s
		}
	}
	return nil
}

func decodeMeta(v value) json.RawMessage {
	if v.kind != mapping {
		v.wrong("a mapping")
		return nil
	}
	raw, ok := v.appendJSON(nil)
	if !ok {
		return nil
	}
	return raw
}

// appendJSON writes v as JSON: members in their order, numbers as they are written
// where JSON allows it.
func (v value) appendJSON(dst []byte) ([]byte, bool) {
	switch v.kind {
	case null:
		return append(dst, "null"...), true
	case boolean:
		return append(dst, strings.ToLower(v.scalar)...), true
	case text:
		return appendString(dst, v.scalar), true
	case integer, float:
		number, ok := jsonNumber(v.scalar)
		if !ok {
			v.wrong("a number that JSON can hold")
		}
		return append(dst, number...), ok
	case list:
		items, _ := v.list()
		dst, ok := append(dst, '['), true
		for i, item := range items {
			dst, ok = item.appendNext(dst, i, ok)
		}
		return append(dst, ']'), ok
	case mapping:
		entries, _ := v.entries()
		dst, ok := append(dst, '{'), true
		for i, e := range entries {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst, ok = e.appendNext(append(appendString(dst, e.key), ':'), 0, ok)
		}
		return append(dst, '}'), ok
	}
	v.wrong("plain data")
	return dst, false
}

// appendNext appends v as element i; ok stays false once it is.
func (v value) appendNext(dst []byte, i int, ok bool) ([]byte, bool) {
	if i > 0 {
		dst = append(dst, ',')
	}
	dst, legal := v.appendJSON(dst)
	return dst, ok && legal
}

func appendString(dst []byte, s string) []byte {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(s) // a text cannot fail
	return append(dst, strings.TrimSuffix(out.String(), "\n")...)
}

// jsonNumber returns a YAML number as JSON writes it.
func jsonNumber(s string) (string, bool) {
	if json.Valid([]byte(s)) {
		return s, true
	}
	if n, ok := new(big.Int).SetString(s, 0); ok {
		return n.String(), true
	}
	x, err := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	if err != nil || math.IsInf(x, 0) || math.IsNaN(x) {
		return "", false
	}
	return strconv.FormatFloat(x, 'g', -1, 64), true
}
