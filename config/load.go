package config

import (
	"reflect"
	"slices"

	"github.com/mainstem-mcp/mainstem/config/document"
)

const maxServers = 1000

// Load reads files and folders into one configuration: their union counts. env
// looks environment variables up. The error is of type Problems if the files could
// be read; it then holds the warnings, too.
func Load(paths []string, env func(string) (string, bool)) (*Config, error) {
	l := &loader{
		env:      withExecutable(env),
		report:   document.NewReport(),
		byKey:    map[string]document.Entry{},
		literals: map[string]bool{},
	}
	names, err := l.files(paths)
	if err != nil {
		return nil, err
	}
	l.first = names[0]
	for _, name := range names {
		data, err := read(name)
		if err != nil {
			return nil, err
		}
		if root, ok := document.Read(l.report, name, data); ok {
			l.add(root)
		}
	}
	c := l.config()
	if problems := l.report.Problems(); problems != nil {
		return nil, problems
	}
	if len(c.Servers) == 0 {
		l.report.Warn(l.first, 1, "mcpServers", "no server is configured (add one)")
	}
	c.Warnings = l.report.Warnings()
	return c, nil
}

// A loader unites files.
type loader struct {
	env      func(string) (string, bool)
	report   *document.Report
	first    string           // the first file
	top      []document.Entry // every key of the top but the servers, once
	byKey    map[string]document.Entry
	servers  []document.Entry // of all files, in order
	literals map[string]bool  // files that hold something that looks like a secret
}

// add takes in what one file says at its top.
func (l *loader) add(root document.Value) {
	if root.IsNull() { // "---" and nothing else
		return
	}
	entries, ok := root.Entries()
	if !ok {
		return
	}
	servers := "" // the key under which this file has them
	for _, e := range entries {
		if e.Key != "mcpServers" && e.Key != "servers" {
			l.unite(e)
			continue
		}
		if servers != "" {
			e.Errorf("both mcpServers and servers (keep mcpServers)")
			continue
		}
		servers = e.Key
		if below, ok := e.Entries(); ok {
			l.servers = append(l.servers, below...)
		}
	}
}

// unite keeps one entry of several files if they are equal.
func (l *loader) unite(e document.Entry) {
	first, there := l.byKey[e.Key]
	if !there {
		l.byKey[e.Key] = e
		l.top = append(l.top, e)
		return
	}
	if !first.Equal(e.Value) {
		e.Errorf("differs from %s (write it in one file, or the same in both)", first.Place())
	}
}

// config decodes what was added.
func (l *loader) config() *Config {
	c := defaults()
	base := l.decodeTop(c)
	byName := map[string]*Server{}
	for i, e := range l.servers {
		if i == maxServers {
			e.Errorf("one server too many (at most %d)", maxServers)
			break
		}
		if !isServerName(e.Key) {
			e.Errorf("no legal server name (want letters, digits, _ and -, at most 64, a letter or digit first, no __)")
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
			l.report.Warn(name, 1, "", "holds what looks like a secret and can be read by others (chmod 600, or write ${VAR})")
		}
	}
	return c
}

// same checks that a server of two files is one.
func (l *loader) same(e document.Entry, first, second *Server) {
	switch {
	case first.Hash != second.Hash || first.Description != second.Description ||
		!sameSet(first.EnabledTools, second.EnabledTools) || !sameSet(first.DisabledTools, second.DisabledTools):
		e.Errorf("differs from the server of this name at %s (connection, description and filters of both must be the same; or rename one)", first.Place)
	case !sameRest(first, second):
		e.Warnf("the same server as at %s with other settings; those of %[1]s count", first.Place)
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
