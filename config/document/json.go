package document

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// JSON returns v as JSON: members in their order, numbers as they are written where
// JSON allows it. What JSON cannot hold is reported.
func (v Value) JSON() (json.RawMessage, bool) {
	raw, ok := v.appendJSON(nil)
	if !ok {
		return nil, false
	}
	return raw, true
}

func (v Value) appendJSON(dst []byte) ([]byte, bool) {
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
			v.Wrong("a number that JSON can hold")
		}
		return append(dst, number...), ok
	case list:
		items, _ := v.List()
		dst, ok := append(dst, '['), true
		for i, item := range items {
			dst, ok = item.appendNext(dst, i, ok)
		}
		return append(dst, ']'), ok
	case mapping:
		entries, _ := v.Entries()
		dst, ok := append(dst, '{'), true
		for i, e := range entries {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst, ok = e.appendNext(append(appendString(dst, e.Key), ':'), 0, ok)
		}
		return append(dst, '}'), ok
	}
	v.Wrong("plain data")
	return dst, false
}

// appendNext appends v as element i; ok stays false once it is.
func (v Value) appendNext(dst []byte, i int, ok bool) ([]byte, bool) {
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
