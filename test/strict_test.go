package test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// strictTool checks a definition as the MCP TypeScript SDK does when it parses a list: one that fails costs such a client all tools.
func strictTool(raw json.RawMessage) error {
	tool, err := object(raw)
	if err != nil {
		return fmt.Errorf("tool: %w", err)
	}
	if kind(tool["name"]) != '"' {
		return fmt.Errorf("name is %s", tool["name"])
	}
	for member, want := range map[string]byte{"title": '"', "description": '"', "annotations": '{', "execution": '{', "_meta": '{', "icons": '[', "outputSchema": '{'} {
		if v, ok := tool[member]; ok && kind(v) != want {
			return fmt.Errorf("%s is %s", member, v)
		}
	}
	if err := strictRoot(tool["inputSchema"]); err != nil {
		return fmt.Errorf("inputSchema: %w", err)
	}
	if v, ok := tool["outputSchema"]; ok {
		if err := strictRoot(v); err != nil {
			return fmt.Errorf("outputSchema: %w", err)
		}
	}
	if err := strictAnnotations(tool["annotations"]); err != nil {
		return err
	}
	return strictIcons(tool["icons"])
}

// strictRoot checks the root of a schema.
func strictRoot(raw json.RawMessage) error {
	schema, err := object(raw)
	if err != nil {
		return err
	}
	if string(schema["type"]) != `"object"` {
		return fmt.Errorf("type is %s", schema["type"])
	}
	if properties, ok := schema["properties"]; ok {
		all, err := object(properties)
		if err != nil {
			return fmt.Errorf("properties: %w", err)
		}
		for name, property := range all {
			if kind(property) != '{' {
				return fmt.Errorf("property %s is %s", name, property)
			}
		}
	}
	var required []string
	if v, ok := schema["required"]; ok && (json.Unmarshal(v, &required) != nil || required == nil) {
		return fmt.Errorf("required is %s", v)
	}
	return nil
}

func strictAnnotations(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	annotations, err := object(raw)
	if err != nil {
		return err
	}
	for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if v, ok := annotations[hint]; ok && string(v) != "true" && string(v) != "false" {
			return fmt.Errorf("%s is %s", hint, v)
		}
	}
	if v, ok := annotations["title"]; ok && kind(v) != '"' {
		return fmt.Errorf("annotations.title is %s", v)
	}
	return nil
}

func strictIcons(raw json.RawMessage) error {
	var icons []struct {
		Src      *string
		MimeType *string
		Sizes    []string
		Theme    *string
	}
	if raw == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &icons); err != nil {
		return fmt.Errorf("icons: %w", err)
	}
	for _, icon := range icons {
		if icon.Src == nil {
			return fmt.Errorf("an icon without src")
		}
	}
	return nil
}

// strictResult checks a tool's result as the MCP TypeScript SDK does.
func strictResult(raw json.RawMessage) error {
	result, err := object(raw)
	if err != nil {
		return err
	}
	var blocks []map[string]json.RawMessage
	if err := json.Unmarshal(result["content"], &blocks); err != nil || blocks == nil {
		return fmt.Errorf("content is %s", result["content"])
	}
	if v, ok := result["isError"]; ok && string(v) != "true" && string(v) != "false" {
		return fmt.Errorf("isError is %s", v)
	}
	if v, ok := result["structuredContent"]; ok && kind(v) != '{' {
		return fmt.Errorf("structuredContent is %s", v)
	}
	for _, block := range blocks {
		needs := map[string][]string{
			`"text"`: {"text"}, `"image"`: {"data", "mimeType"}, `"audio"`: {"data", "mimeType"}, `"resource_link"`: {"uri", "name"}, `"resource"`: {},
		}
		members, ok := needs[string(block["type"])]
		if !ok {
			return fmt.Errorf("a block of type %s", block["type"])
		}
		for _, member := range members {
			if kind(block[member]) != '"' {
				return fmt.Errorf("%s of a %s block is %s", member, block["type"], block[member])
			}
		}
	}
	return nil
}

// keyAllowed is what Claude Code accepts as the name of a property.
var keyAllowed = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// flatSchema checks, at any depth, what `schema: flatten` promises beyond the strict check, because some client skips a tool otherwise.
func flatSchema(raw json.RawMessage) error {
	if kind(raw) != '{' {
		return fmt.Errorf("a schema is %s", raw)
	}
	schema, _ := object(raw)
	for _, gone := range []string{"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "$defs", "definitions"} {
		if v, ok := schema[gone]; ok {
			return fmt.Errorf("%s is left: %s", gone, v)
		}
	}
	if v, ok := schema["items"]; ok && kind(v) != '{' {
		return fmt.Errorf("items is %s", v)
	}
	for _, bound := range []string{"exclusiveMinimum", "exclusiveMaximum"} {
		if v := kind(schema[bound]); v == 't' || v == 'f' {
			return fmt.Errorf("%s is %s", bound, schema[bound])
		}
	}
	if v, ok := schema["required"]; ok && kind(v) != '[' {
		return fmt.Errorf("required is %s", v)
	}
	if err := knownType(schema["type"]); err != nil {
		return err
	}
	properties, _ := object(schema["properties"])
	for name, property := range properties {
		if !keyAllowed.MatchString(name) {
			return fmt.Errorf("property %q", name)
		}
		if err := flatSchema(property); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if items, ok := schema["items"]; ok {
		return flatSchema(items)
	}
	return nil
}

func knownType(raw json.RawMessage) error {
	if raw == nil {
		return nil
	}
	var names []string
	if kind(raw) == '"' {
		names = make([]string, 1)
		_ = json.Unmarshal(raw, &names[0])
	} else if err := json.Unmarshal(raw, &names); err != nil {
		return fmt.Errorf("type is %s", raw)
	}
	for _, name := range names {
		if !slices.Contains([]string{"string", "number", "integer", "boolean", "object", "array", "null"}, name) {
			return fmt.Errorf("type %q", name)
		}
	}
	return nil
}

// kind returns the first byte of a value: { [ " t f n or a digit; 0 if there is none.
func kind(raw json.RawMessage) byte {
	if len(raw) == 0 {
		return 0
	}
	return raw[0]
}

func object(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if kind(raw) != '{' {
		return nil, fmt.Errorf("no object: %.200s", raw)
	}
	var members map[string]json.RawMessage
	return members, json.Unmarshal(raw, &members)
}
