package config

import (
	"encoding/json"
	"strings"

	"github.com/mainstem-mcp/mainstem/config/document"
)

// decodeOverrides reads tools: a mapping from raw names.
func decodeOverrides(v document.Value) map[string]Override {
	entries, ok := v.Entries()
	if !ok {
		return nil
	}
	out := make(map[string]Override, len(entries))
	for _, e := range entries {
		if strings.TrimSpace(e.Key) == "" {
			e.Errorf("a tool without a name")
		}
		o, ok := e.Object()
		if !ok {
			continue
		}
		var override Override
		if v, there := o.Get("name"); there {
			if s, ok := v.Filled(); ok {
				override.Name = &s
			}
		}
		override.Title = optional(o, "title")
		override.Description = optional(o, "description")
		if v, there := o.Get("meta"); there {
			override.Meta = decodeMeta(v)
		}
		o.Close(nil)
		out[e.Key] = override
	}
	return out
}

// optional is a text that may be absent.
func optional(o *document.Object, key string) *string {
	if v, there := o.Get(key); there {
		if s, ok := v.Text(); ok {
			return &s
		}
	}
	return nil
}

func decodeMeta(v document.Value) json.RawMessage {
	if !v.IsMapping() {
		v.Wrong("a mapping")
		return nil
	}
	raw, _ := v.JSON()
	return raw
}
