package config

import (
	"reflect"
	"slices"
)

const maxServers = 1000

// Load reads files and folders into one configuration: their union counts. env
// looks environment variables up. The error is of type Problems if the files could
// be read; it then holds the warnings, too.
func Load(paths []string, env func(string) (string, bool)) (*Config, error) {
	l := &loader{
		env:      withExecutable(env),
		report:   &report{order: map[string]int{}},
		byKey:    map[string]entry{},
		literals: map[string]bool{},
	}
	names, err := l.files(paths)
	if err != nil {
		return nil, err
	}
	l.first = names[0]
	for i, name := range names {
		l.report.order[name] = i
		data, err := read(name)
		if err != nil {
			return nil, err
		}
		f := &file{name: name, report: l.report}
		if root := f.parse(data); root != nil {
			l.add(value{root, f, root.line, ""})
		}
	}
	c := l.config()
	if len(l.report.errors) > 0 {
		return nil, l.report.sorted(append(l.report.errors, l.report.warnings...))
	}
	if len(c.Servers) == 0 {
		l.report.warn(l.first, 1, "mcpServers", "no server is configured (add one)")
	}
	c.Warnings = l.report.sorted(l.report.warnings)
	return c, nil
}

// A loader unites files.
type loader struct {
	env      func(string) (string, bool)
	report   *report
	first    string  // the first file
	top      []entry // every key of the top but the servers, once
	byKey    map[string]entry
	servers  []entry         // of all files, in order
	literals map[string]bool // files that hold something that looks like a secret
}

// add takes in what one file says at its top.
func (l *loader) add(root value) {
	if root.kind == null { // "---" and nothing else
		return
	}
	entries, ok := root.entries()
	if !ok {
		return
	}
	servers := "" // the key under which this file has them
	for _, e := range entries {
		if e.key != "mcpServers" && e.key != "servers" {
			l.unite(e)
			continue
		}
		if servers != "" {
			e.errorf("both mcpServers and servers (keep mcpServers)")
			continue
		}
		servers = e.key
		if below, ok := e.entries(); ok {
			l.servers = append(l.servers, below...)
		}
	}
}

// unite keeps one entry of several files if they are equal.
func (l *loader) unite(e entry) {
	first, there := l.byKey[e.key]
	if !there {
		l.byKey[e.key] = e
		l.top = append(l.top, e)
		return
	}
	if !equal(first.node, e.node) {
		e.errorf("differs from %s (write it in one file, or the same in both)", first.place())
	}
}

// equal compares values; the order of members does not count.
func equal(a, b *node) bool {
	if a.kind != b.kind || a.scalar != b.scalar || len(a.items) != len(b.items) || len(a.members) != len(b.members) {
		return false
	}
	for i := range a.items {
		if !equal(a.items[i], b.items[i]) {
			return false
		}
	}
	of := make(map[string]*node, len(b.members))
	for _, m := range b.members {
		of[m.key] = m.value
	}
	for _, m := range a.members {
		if other := of[m.key]; other == nil || !equal(m.value, other) {
			return false
		}
	}
	return true
}

// config decodes what was added.
func (l *loader) config() *Config {
	c := defaults()
	base := l.decodeTop(c)
	byName := map[string]*Server{}
	for i, e := range l.servers {
		if i == maxServers {
			e.errorf("one server too many (at most %d)", maxServers)
			break
		}
		if !isServerName(e.key) {
			e.errorf("no legal server name (want letters, digits, _ and -, at most 64, a letter or digit first, no __)")
		}
		s := l.decodeServer(e, base)
		if s == nil {
			continue
		}
		if first := byName[s.Name]; first != nil {
			l.same(e, first, s)
			continue
		}
		byName[s.Name] = s
		c.Servers = append(c.Servers, s)
	}
	for name := range l.literals {
		if othersCanRead(name) {
			l.report.warn(name, 1, "", "holds what looks like a secret and can be read by others (chmod 600, or write ${VAR})")
		}
	}
	return c
}

// same checks that a server of two files is one.
func (l *loader) same(e entry, first, second *Server) {
	switch {
	case first.Hash != second.Hash || first.Description != second.Description ||
		!sameSet(first.EnabledTools, second.EnabledTools) || !sameSet(first.DisabledTools, second.DisabledTools):
		e.errorf("differs from the server of this name at %s (connection, description and filters of both must be the same; or rename one)", first.Place)
	case !sameRest(first, second):
		e.warnf("the same server as at %s with other settings; those of %[1]s count", first.Place)
	}
}

// isServerName applies ^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$, without "__".
func isServerName(name string) bool {
	if name == "" || len(name) > 64 || name[0] == '_' || name[0] == '-' {
		return false
	}
	for i, c := range []byte(name) {
		switch {
		case '0' <= c && c <= '9', 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', c == '-':
		case c == '_' && (i == 0 || name[i-1] != '_'):
		default:
			return false
		}
	}
	return true
}

func sameSet(a, b []string) bool {
	if (a == nil) != (b == nil) {
		return false
	}
	return slices.Equal(slices.Compact(slices.Sorted(slices.Values(a))), slices.Compact(slices.Sorted(slices.Values(b))))
}

// sameRest compares what may differ without being another server.
func sameRest(a, b *Server) bool {
	rest := func(s *Server) Server {
		return Server{Enabled: s.Enabled, Timeout: s.Timeout, MaxResponseBytes: s.MaxResponseBytes, CacheTTL: s.CacheTTL,
			Session: s.Session, Schema: s.Schema, Output: s.Output, Tools: s.Tools}
	}
	return reflect.DeepEqual(rest(a), rest(b))
}
