package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mainstem-mcp/mainstem/config/document"
)

const maxMessage = 1 << 30

// A serverReader decodes one entry of mcpServers.
type serverReader struct {
	*loader
	*document.Object
	s        *Server
	x        *expander
	base     document.Value // mcpServerUrl
	identity []string       // what Hash covers
}

// decodeServer returns nil if e is no mapping. Its problems are reported.
func (l *loader) decodeServer(e document.Entry, base document.Value) *Server {
	o, ok := e.Object()
	if !ok {
		return nil
	}
	r := &serverReader{loader: l, Object: o, s: serverDefaults(e.Key), x: &expander{env: l.env}, base: base}
	r.s.Place = e.Place()
	r.general()
	r.reach()
	r.filters()
	if v, there := r.Get("tools"); there {
		r.s.Tools = decodeOverrides(v)
	}
	for _, key := range []string{"trust", "alwaysAllow", "autoApprove", "gallery", "version"} {
		if v, there := r.Foreign(key); there {
			v.Warnf("a key of another client that has no effect here")
		}
	}
	r.Close(serverHints())
	r.s.Failed = r.x.failed()
	r.s.Hash = r.hash()
	return r.s
}

// serverHints says what to write instead of keys that other clients have.
func serverHints() map[string]string {
	return map[string]string{
		"serverUrl":           "write url",
		"envFile":             "write its variables under env, as NAME: value or NAME: ${NAME}",
		"env_file":            "write its variables under env, as NAME: value or NAME: ${NAME}",
		"http_headers":        "write headers",
		"env_http_headers":    "write headers, as NAME: ${VAR}",
		"oauth":               "write auth: {type: oauth}",
		"tool_timeout_sec":    "write timeout, in seconds",
		"startup_timeout_sec": "write timeout, in seconds",
	}
}

// general reads what every server may have.
func (r *serverReader) general() {
	s := r.s
	r.SetText("description", &s.Description)
	r.SetBool("enabled", &s.Enabled)
	if v, there := r.Foreign("disabled"); there {
		disabled, ok := v.Bool()
		if ok && r.Has("enabled") {
			v.Errorf("both enabled and disabled (keep enabled)")
		}
		s.Enabled = s.Enabled && !disabled
	}
	r.SetOneOf("protocol_version", &s.ProtocolVersion, "auto", "legacy", "2026-07-28")
	r.identify("protocol_version", s.ProtocolVersion)
	r.SetDuration("timeout", &s.Timeout, time.Second, 300*time.Second)
	r.SetInt("max_response_bytes", &s.MaxResponseBytes, 1, maxMessage)
	r.SetDuration("cache_ttl", &s.CacheTTL, time.Minute, 168*time.Hour)
	r.SetOneOf("session", &s.Session, "auto", "shared", "per_client")
	r.SetOneOf("schema", &s.Schema, "flatten", "passthrough")
	r.SetOneOf("output", &s.Output, "mixed", "text", "passthrough")
}

// reach reads how the server is reached: by command or by url.
func (r *serverReader) reach() {
	transport := r.transport()
	process, remote := r.Has("command"), r.Has("url") || r.Has("httpUrl")
	switch {
	case process && remote:
		r.Errorf("server %q has both command and url (keep one)", r.s.Name)
	case process || remote:
	case transport == Stdio:
		r.Errorf("server %q has no command, which transport stdio needs", r.s.Name)
		process = true
	case !r.base.IsZero():
		remote = true
	default:
		r.Errorf("server %q has neither command nor url (write one of them)", r.s.Name)
	}
	r.process()
	r.remote(!process && remote)
	switch {
	case process == remote: // reported
	case process:
		r.s.Transport = r.byCommand(transport)
	default:
		r.s.Transport = r.byURL(transport)
	}
	r.identify("transport", string(r.s.Transport))
}

func (r *serverReader) byCommand(written Transport) Transport {
	r.misplaced("command", "headers", "bearer_token_env_var", "auth")
	if written != Auto && written != Stdio {
		r.Errorf("transport %s does not go with command (leave transport out, or write url)", written)
	}
	return Stdio
}

func (r *serverReader) byURL(written Transport) Transport {
	r.misplaced("url", "args", "env", "inherit_env", "cwd")
	if written == Stdio {
		r.Errorf("transport stdio does not go with url (leave transport out, or write command)")
	}
	if !r.Has("httpUrl") {
		return written
	}
	if written == SSE {
		r.Errorf("transport sse does not go with httpUrl (write url)")
	}
	return StreamableHTTP
}

// transport reads transport and the type of other clients.
func (r *serverReader) transport() Transport {
	var written, pasted string
	r.SetOneOf("transport", &written, string(Stdio), string(StreamableHTTP), string(SSE))
	if v, there := r.Foreign("type"); there {
		kind, _ := v.OneOf("http", "sse", "stdio", "streamable-http", "streamableHttp", "streamable_http")
		switch kind {
		case "":
		case "sse", "stdio":
			pasted = kind
		default:
			pasted = string(StreamableHTTP)
		}
		if pasted != "" && written != "" && pasted != written {
			v.Errorf("differs from transport %s (keep transport)", written)
		}
	}
	switch {
	case written != "":
		return Transport(written)
	case pasted != "":
		return Transport(pasted)
	}
	return Auto
}

// misplaced reports keys that do not go with the other one.
func (r *serverReader) misplaced(with string, keys ...string) {
	for _, key := range keys {
		if v, there := r.Find(key); there {
			v.Errorf("does not go with %s (leave it out)", with)
		}
	}
}

// process reads what belongs to command.
func (r *serverReader) process() {
	s := r.s
	if v, there := r.Get("command"); there {
		if raw, ok := v.Filled(); ok {
			s.Command, ok = r.expanded(v, raw, "command", false)
			if ok && strings.TrimSpace(s.Command) == "" {
				r.x.fail(v, "command is empty")
			}
		}
	}
	if v, there := r.Get("args"); there {
		s.HasArgs = true
		s.Args = r.args(v)
		r.identify("args", "written") // without them command may be a line for the shell
	}
	if v, there := r.Get("env"); there {
		s.Env = r.variables(v)
	}
	if v, there := r.Get("inherit_env"); there {
		s.InheritEnv = r.inherited(v)
		r.identify("inherit_env", fmt.Sprintf("%q", s.InheritEnv))
	}
	if v, there := r.Get("cwd"); there {
		s.Cwd, _ = r.x.file(v)
		r.identify("cwd", s.Cwd)
	}
}

// expanded returns raw expanded, "" if that cannot be. The hash covers it: as
// written if it cannot be expanded today. secret: its name says that it is one.
func (r *serverReader) expanded(v document.Value, raw, key string, secret bool) (string, bool) {
	r.checkLiteral(v, raw, secret)
	s, ok := r.x.expand(v, raw)
	if ok {
		r.identify(key, s)
	} else {
		r.identify(key, raw)
	}
	return s, ok
}

func (r *serverReader) args(v document.Value) []string {
	items, _ := v.List()
	out := make([]string, 0, len(items))
	for i, item := range items {
		if raw, ok := item.Text(); ok {
			s, _ := r.expanded(item, raw, fmt.Sprintf("args[%d]", i), secretOption.MatchString(raw))
			out = append(out, s)
		}
	}
	return out
}

func (r *serverReader) variables(v document.Value) []Var {
	entries, _ := v.Entries()
	var out []Var
	for _, e := range entries {
		raw, ok := e.Text()
		if !ok {
			continue
		}
		if e.Key == "" || strings.ContainsAny(e.Key, "=\x00") {
			e.Errorf("no legal name of an environment variable")
			continue
		}
		r.checkLiteral(e.Value, raw, secretVariable.MatchString(e.Key))
		if s, ok := r.x.expand(e.Value, raw); ok {
			out = append(out, Var{e.Key, NewSecret(s)})
		}
		r.identify("env."+e.Key, raw)
	}
	return out
}

func (r *serverReader) inherited(v document.Value) []string {
	items, _ := v.List()
	var out []string
	for _, item := range items {
		name, ok := item.Filled()
		if !ok {
			continue
		}
		if !isVariable(name) {
			item.Errorf("no name of an environment variable (want one such as SSH_AUTH_SOCK)")
			continue
		}
		out = append(out, name)
	}
	return out
}

// filters reads both lists, under their own or another client's names.
func (r *serverReader) filters() {
	r.s.EnabledTools = r.patterns("enabled_tools", "includeTools")
	if r.s.EnabledTools != nil && len(r.s.EnabledTools) == 0 {
		v, there := r.Find("enabled_tools")
		if !there {
			v, _ = r.Find("includeTools")
		}
		v.Errorf("is empty: that could mean all or none (leave it out for all; enabled: false for none)")
	}
	r.s.DisabledTools = r.patterns("disabled_tools", "excludeTools")
}

func (r *serverReader) patterns(key, alien string) []string {
	v, there := r.Get(key)
	if pasted, too := r.Foreign(alien); too {
		if there {
			pasted.Errorf("both %s and %s (keep %[1]s)", key, alien)
		}
		v, there = pasted, true
	}
	if !there {
		return nil
	}
	list, ok := v.Texts()
	if !ok {
		return nil
	}
	return list
}

// identify lets the hash cover a fact.
func (r *serverReader) identify(key, fact string) {
	r.identity = append(r.identity, key+"\x00"+fact)
}

func (r *serverReader) hash() string {
	slices.Sort(r.identity) // the order in the file does not matter
	h := sha256.New()
	for _, fact := range r.identity {
		fmt.Fprintf(h, "%d:%s,", len(fact), fact)
	}
	return hex.EncodeToString(h.Sum(nil))
}
