package streamable

import (
	"net/http"
	"strings"
)

// An acceptance is which of our two kinds of answer a client takes.
type acceptance struct{ json, stream bool }

// accepted reads Accept. Clients must name both kinds, but there are some that do not:
// whatever they name is served, and a client that names nothing takes anything (RFC
// 9110, section 12.5.1).
func accepted(header []string) acceptance {
	if len(header) == 0 || len(header) == 1 && header[0] == usual {
		return acceptance{true, true}
	}
	var a acceptance
	for _, line := range header {
		for item := range strings.SplitSeq(line, ",") {
			kind, params, _ := strings.Cut(item, ";")
			if rejects(params) {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case "application/json", "application/*":
				a.json = true
			case "text/event-stream", "text/*":
				a.stream = true
			case "*/*":
				a = acceptance{true, true}
			}
		}
	}
	return a
}

const usual = "application/json, text/event-stream"

// rejects reports whether the weight of a kind says that it is not acceptable.
func rejects(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(param, "=")
		if strings.EqualFold(strings.TrimSpace(name), "q") {
			return strings.Trim(strings.TrimSpace(value), "0.") == ""
		}
	}
	return false
}

// isJSON reports whether the body of a request is JSON as it is.
func isJSON(h http.Header) bool {
	contentType := h["Content-Type"]
	if len(contentType) != 1 || len(h["Content-Encoding"]) > 0 && h.Get("Content-Encoding") != "identity" {
		return false
	}
	if contentType[0] == "application/json" {
		return true
	}
	kind, _, _ := strings.Cut(contentType[0], ";")
	return strings.EqualFold(strings.TrimSpace(kind), "application/json")
}
