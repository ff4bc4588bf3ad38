package config

import (
	"slices"
	"strings"
)

// Allows reports whether the filters let the tool rawName pass: it is in
// enabled_tools, if that is given, and not in disabled_tools, which wins. Whether
// the server is enabled does not count here.
func (s *Server) Allows(rawName string) bool {
	fits := func(pattern string) bool { return matches(pattern, rawName) }
	if slices.ContainsFunc(s.DisabledTools, fits) {
		return false
	}
	return s.EnabledTools == nil || slices.ContainsFunc(s.EnabledTools, fits)
}

// Unmatched returns the entries of both lists that fit none of rawNames, once each
// and in their order: they deserve a warning.
func (s *Server) Unmatched(rawNames []string) []string {
	var out []string
	for _, pattern := range slices.Concat(s.EnabledTools, s.DisabledTools) {
		fits := func(name string) bool { return matches(pattern, name) }
		if !slices.ContainsFunc(rawNames, fits) && !slices.Contains(out, pattern) {
			out = append(out, pattern)
		}
	}
	return out
}

// matches reports whether name fits pattern, in which * stands for any run of
// characters, none included, and everything else for itself. The parts between
// stars are looked for from the left, which costs no more than one pass.
func matches(pattern, name string) bool {
	first, rest, star := strings.Cut(pattern, "*")
	if !star {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		_, name, ok = strings.Cut(name, part)
		if !ok {
			return false
		}
	}
	return strings.HasSuffix(name, last)
}
