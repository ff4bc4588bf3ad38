package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
)

// arguments makes one object of what --json gave and of key=value pairs, which win. A
// value gets the type that the tool's schema has for its key; a key that is given
// several times is a list.
func arguments(given json.RawMessage, pairs []string, input json.RawMessage) (json.RawMessage, error) {
	if len(pairs) == 0 {
		return given, nil
	}
	if input != nil { // references and combinators would hide the types
		input, _, _ = schema.Input(input, schema.Flatten)
	}
	properties := jsonrpc.Get(input, "properties")
	var keys []string
	values := map[string][]string{}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		if values[key] == nil {
			keys = append(keys, key)
		}
		values[key] = append(values[key], value)
	}
	out := []byte{'{'}
	add := func(key string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsonrpc.AppendQuote(out, key), ':'), value...)
	}
	for m := range jsonrpc.Members(given) {
		if name := m.Name(); values[name] == nil {
			add(name, m.Value)
		}
	}
	for _, key := range keys {
		value, err := typed(key, values[key], jsonrpc.Get(properties, key))
		if err != nil {
			return nil, err
		}
		add(key, value)
	}
	return append(out, '}'), nil
}

// typed makes JSON of the values of one key.
func typed(key string, values []string, property json.RawMessage) (json.RawMessage, error) {
	kinds := types(property)
	if len(values) == 1 {
		if value, ok := convert(values[0], kinds); ok {
			return value, nil
		}
	}
	switch list := slices.Contains(kinds, "array"); {
	case kinds != nil && !list && len(values) == 1:
		return nil, usage("call: %s: want %s, not %q", key, strings.Join(kinds, " or "), values[0])
	case kinds != nil && !list:
		return nil, usage("call: %s: given %d times, but it takes one %s", key, len(values), strings.Join(kinds, " or "))
	}
	items := types(jsonrpc.Get(property, "items"))
	out := []byte{'['}
	for i, text := range values {
		value, ok := convert(text, items)
		if !ok {
			return nil, usage("call: %s: want a list of %s, not %q", key, strings.Join(items, " or "), text)
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, value...)
	}
	return append(out, ']'), nil
}

// types are the JSON types that a schema allows; nil if it does not say.
func types(property json.RawMessage) []string {
	of := jsonrpc.Get(property, "type")
	if one, ok := jsonrpc.Unquote(of); ok {
		return []string{one}
	}
	var all []string
	for element := range jsonrpc.Elements(of) {
		if one, ok := jsonrpc.Unquote(element); ok {
			all = append(all, one)
		}
	}
	return all
}

// convert makes JSON of one value: of a type that is allowed, a text only if nothing
// else fits. Without types, whatever is JSON is taken for it.
func convert(text string, kinds []string) (json.RawMessage, bool) {
	kind := jsonType(text)
	fits := kind != "" && (kinds == nil && kind != "string" ||
		slices.Contains(kinds, kind) && kind != "string" ||
		kind == "integer" && slices.Contains(kinds, "number") ||
		kind == "number" && slices.Contains(kinds, "integer")) // 1e3 and 1.0 are whole; the server decides
	switch {
	case fits:
		return json.RawMessage(strings.TrimSpace(text)), true
	case kinds == nil, slices.Contains(kinds, "string"):
		return jsonrpc.AppendQuote(nil, text), true
	}
	return nil, false
}

// jsonType is the type of a text that is one JSON value; "" if it is none.
func jsonType(text string) string {
	value := []byte(strings.TrimSpace(text))
	if jsonrpc.Check(value) != nil {
		return ""
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if strings.ContainsAny(string(value), ".eE") {
		return "number"
	}
	return "integer"
}
