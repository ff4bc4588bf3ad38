package schema

import (
	"slices"
	"strings"
)

// A role is what the value of a keyword means to the flattener.
type role uint8

const (
	roleData       role = iota // any value; nothing in it is looked at
	roleVendor                 // the same, but references may lead into it
	roleGone                   // of no use once everything is written out
	roleDialect                // $schema
	roleReference              // followed
	roleCombinator             // a list of schemas of which one remains
	roleSchema                 // a schema
	roleItems                  // a schema, in older drafts a list of them
	roleAdditional             // additionalItems, which depends on the form of items
	roleNot                    // a schema that must not be simplified
	roleBranch                 // if, then, else
	roleSchemas                // an object of schemas
	roleEither                 // an object of schemas and lists of names
	roleNames                  // an object of lists of names
	roleTuple                  // a list of schemas
	roleRequired               // a list of names
	roleType                   // a name or a list of names
	roleList                   // a list of data
	roleString                 // a string
	roleBool                   // a boolean
	roleBound                  // a number
	roleExclusive              // a number, in draft 4 a boolean
	roleCount                  // an integer that is not negative
	roleDivisor                // a positive number
)

// A rule says how two values of a keyword become one that both sides agree with.
type rule uint8

const (
	ruleSame     rule = iota // the first one, with a warning if they differ
	ruleFirst                // the first one
	ruleSchema               // merged
	ruleUnite                // united by name, merged where both have one
	ruleTuple                // merged place by place
	ruleRequired             // each name once
	ruleNames                // the same, for each member
	ruleType                 // what both allow
	ruleEnum                 // what both list
	ruleLower                // a lower bound: the greater one
	ruleUpper                // an upper bound: the lesser one
	ruleMultiple             // the least common multiple
	ruleEither               // true if one is
	ruleBranches             // if, then and else as one
)

type keyword struct {
	role role
	rule rule
}

// lookup returns what is known of a keyword; those that are not known are data.
func lookup(key string) keyword {
	if k, ok := keywords[key]; ok {
		return k
	}
	return keyword{roleVendor, ruleSame}
}

var keywords = map[string]keyword{
	"$schema": {roleDialect, ruleFirst}, "$id": {roleGone, ruleFirst}, "$anchor": {roleGone, ruleFirst},
	"$dynamicAnchor": {roleGone, ruleFirst}, "$recursiveAnchor": {roleGone, ruleFirst}, "$vocabulary": {roleGone, ruleFirst},
	"$comment": {roleGone, ruleFirst}, "$defs": {roleGone, ruleFirst}, "definitions": {roleGone, ruleFirst},

	"$ref": {roleReference, ruleFirst}, "$dynamicRef": {roleReference, ruleFirst}, "$recursiveRef": {roleReference, ruleFirst},
	"allOf": {roleCombinator, ruleFirst}, "anyOf": {roleCombinator, ruleFirst}, "oneOf": {roleCombinator, ruleFirst},

	"not": {roleNot, ruleSame}, "if": {roleBranch, ruleBranches}, "then": {roleBranch, ruleBranches}, "else": {roleBranch, ruleBranches},

	"properties": {roleSchemas, ruleUnite}, "patternProperties": {roleSchemas, ruleUnite}, "dependentSchemas": {roleSchemas, ruleUnite},
	"dependencies": {roleEither, ruleSame}, "dependentRequired": {roleNames, ruleNames}, "required": {roleRequired, ruleRequired},
	"additionalProperties": {roleSchema, ruleSchema}, "unevaluatedProperties": {roleSchema, ruleSchema},
	"propertyNames": {roleSchema, ruleSchema}, "minProperties": {roleCount, ruleLower}, "maxProperties": {roleCount, ruleUpper},

	"items": {roleItems, ruleSchema}, "prefixItems": {roleTuple, ruleTuple}, "additionalItems": {roleAdditional, ruleSchema},
	"unevaluatedItems": {roleSchema, ruleSchema}, "contains": {roleSchema, ruleSchema}, "uniqueItems": {roleBool, ruleEither},
	"minItems": {roleCount, ruleLower}, "maxItems": {roleCount, ruleUpper},
	"minContains": {roleCount, ruleLower}, "maxContains": {roleCount, ruleUpper},

	"type": {roleType, ruleType}, "enum": {roleList, ruleEnum}, "const": {roleData, ruleSame},
	"minimum": {roleBound, ruleLower}, "maximum": {roleBound, ruleUpper},
	"exclusiveMinimum": {roleExclusive, ruleLower}, "exclusiveMaximum": {roleExclusive, ruleUpper},
	"multipleOf": {roleDivisor, ruleMultiple}, "minLength": {roleCount, ruleLower}, "maxLength": {roleCount, ruleUpper},
	"pattern": {roleString, ruleSame}, "format": {roleString, ruleSame},
	"contentEncoding": {roleString, ruleSame}, "contentMediaType": {roleString, ruleSame}, "contentSchema": {roleSchema, ruleSchema},

	"title": {roleString, ruleFirst}, "description": {roleString, ruleFirst}, "default": {roleData, ruleFirst}, "examples": {roleList, ruleFirst},
	"deprecated": {roleBool, ruleFirst}, "readOnly": {roleBool, ruleFirst}, "writeOnly": {roleBool, ruleFirst},
}

// fits reports whether a value is of the kind that the keyword asks for. Schemas are
// not its matter: what is no schema is replaced, not left out.
func (k keyword) fits(v *node) bool {
	switch k.role {
	case roleSchemas, roleEither, roleNames:
		return v.kind == object
	case roleCombinator, roleTuple:
		return v.kind == list && len(v.members) > 0
	case roleRequired, roleList:
		return v.kind == list
	case roleString, roleDialect:
		return v.isString()
	case roleBool:
		return v.isBool()
	case roleBound, roleExclusive:
		return v.isNumber()
	case roleCount:
		return v.isNumber() && isCount(v.raw)
	case roleDivisor:
		d := decimal{negative: true}
		if v.isNumber() {
			d = parseDecimal(v.raw)
		}
		return !d.negative && d.digits != ""
	}
	return true
}

func isCount(raw string) bool {
	d := parseDecimal(raw)
	return !d.negative && d.whole()
}

// isSchema reports whether v can be a schema at all.
func isSchema(v *node) bool { return v.kind == object || v.isBool() }

// jsonType returns the JSON Schema name of a type that servers write in other ways;
// false if it is none.
func jsonType(name string) (string, bool) {
	name = strings.ToLower(name)
	switch name {
	case "string", "number", "integer", "boolean", "object", "array", "null":
		return name, true
	case "int", "long":
		return "integer", true
	case "float", "double":
		return "number", true
	case "str":
		return "string", true
	case "bool":
		return "boolean", true
	case "list":
		return "array", true
	case "dict":
		return "object", true
	}
	return "", false
}

// types returns the names in the value of type, translated and each once; nil if one
// of them is no type.
func types(v *node) []string {
	if v == nil {
		return nil
	}
	values := v.members
	if v.kind != list {
		values = []member{{value: v}}
	}
	var names []string
	for _, m := range values {
		name, ok := jsonType(m.value.string())
		if !ok || !m.value.isString() {
			return nil
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// typeNode is the reverse of types. A single name stays in a list if one is wanted.
func typeNode(names []string, asList bool) *node {
	if len(names) == 1 && !asList {
		return text(`"` + names[0] + `"`)
	}
	n := build(list)
	for _, name := range names {
		n.add("", text(`"`+name+`"`))
	}
	return n
}
