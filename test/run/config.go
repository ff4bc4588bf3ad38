package run

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/mainstem-mcp/mainstem/test/fake"
)

// Fields are members of the configuration file.
type Fields map[string]any

// A Server is one entry of mcpServers.
type Server struct {
	Name   string
	Fields Fields
}

// A Config is a configuration file. Servers keep their order.
type Config struct {
	Top     Fields // whatever stands at the top beside mcpServers
	Servers []Server
	Text    string // the whole file, instead of the above; listen and state_dir are not added
}

// HTTP returns an entry for a fake server that is reached by its URL.
func HTTP(name string, s *fake.Server, more ...Fields) Server {
	return entry(name, Fields{"url": s.URL}, more)
}

// Stdio returns an entry for a fake server that is started.
func Stdio(name string, s *fake.Server, more ...Fields) Server {
	return entry(name, Fields{"command": s.Command[0], "args": s.Command[1:]}, more)
}

func entry(name string, fields Fields, more []Fields) Server {
	for _, m := range more {
		maps.Copy(fields, m)
	}
	return Server{Name: name, Fields: fields}
}

// Of returns a configuration of these servers.
func Of(servers ...Server) Config { return Config{Servers: servers} }

// With returns the configuration with more members at its top.
func (c Config) With(top Fields) Config {
	all := maps.Clone(top)
	maps.Copy(all, c.Top)
	c.Top = all
	return c
}

// file writes the configuration as JSON, which is YAML.
func (c Config) file(stateDir string) []byte {
	if c.Text != "" {
		return []byte(c.Text)
	}
	top := Fields{"state_dir": stateDir, "log": Fields{"level": "debug", "format": "json"}}
	maps.Copy(top, c.Top)
	limits := Fields{"first_list_wait": "20s"} // a busy machine may be slow to start a server
	if own, ok := top["limits"].(Fields); ok {
		maps.Copy(limits, own)
	}
	top["limits"] = limits
	var out bytes.Buffer
	out.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(top)) {
		out.WriteString("  " + literal(name) + ": " + literal(top[name]) + ",\n")
	}
	out.WriteString(`  "mcpServers": {`)
	for i, s := range c.Servers {
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString("\n    " + literal(s.Name) + ": " + literal(s.Fields))
	}
	out.WriteString("\n  }\n}\n")
	return out.Bytes()
}

func literal(v any) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // a test wrote something that is no JSON
	}
	return string(bytes.TrimSpace(out.Bytes()))
}
