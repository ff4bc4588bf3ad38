package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

const maxMessage = 1 << 30

// A serverReader decodes one entry of mcpServers.
type serverReader struct {
	*loader
	*object
	s        *Server
	x        *expander
	base     value    // mcpServerUrl
	identity []string // what Hash covers
}

// decodeServer returns nil if e is no mapping. Its problems are reported.
func (l *loader) decodeServer(e entry, base value) *Server {
	o, ok := e.object()
	if !ok {
		return nil
	}
	r := &serverReader{loader: l, object: o, s: serverDefaults(e.key), x: &expander{env: l.env}, base: base}
	r.s.Place = e.place()
	r.general()
	r.reach()
	r.filters()
	if v, there := r.get("tools"); there {
		r.s.Tools = decodeOverrides(v)
	}
	for _, key := range []string{"trust", "alwaysAllow", "autoApprove", "gallery", "version"} {
		if v, there := r.foreign(key); there {
			v.warnf("a key of another client that has no effect here")
		}
	}
	r.close(serverHints())
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
	r.setText("description", &s.Description)
	r.setBool("enabled", &s.Enabled)
	if v, there := r.foreign("disabled"); there {
		disabled, ok := v.boolean()
		if ok && r.has("enabled") {
			v.errorf("both enabled and disabled (keep enabled)")
		}
		s.Enabled = s.Enabled && !disabled
	}
	r.setOneOf("protocol_version", &s.ProtocolVersion, "auto", "legacy", "2026-07-28")
	r.identify("protocol_version", s.ProtocolVersion)
	r.setDuration("timeout", &s.Timeout, time.Second, 300*time.Second)
	r.setInt("max_response_bytes", &s.MaxResponseBytes, 1, maxMessage)
	r.setDuration("cache_ttl", &s.CacheTTL, time.Minute, 168*time.Hour)
	r.setOneOf("session", &s.Session, "auto", "shared", "per_client")
	r.setOneOf("schema", &s.Schema, "flatten", "passthrough")
	r.setOneOf("output", &s.Output, "mixed", "text", "passthrough")
}

// reach reads how the server is reached: by command or by url.
func (r *serverReader) reach() {
	transport := r.transport()
	process, remote := r.has("command"), r.has("url") || r.has("httpUrl")
	switch {
	case process && remote:
		r.errorf("server %q has both command and url (keep one)", r.s.Name)
	case process || remote:
	case transport == Stdio:
		r.errorf("server %q has no command, which transport stdio needs", r.s.Name)
		process = true
	case r.base.node != nil:
		remote = true
	default:
		r.errorf("server %q has neither command nor url (write one of them)", r.s.Name)
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
		r.errorf("transport %s does not go with command (leave transport out, or write url)", written)
	}
	return Stdio
}

func (r *serverReader) byURL(written Transport) Transport {
	r.misplaced("url", "args", "env", "inherit_env", "cwd")
	if written == Stdio {
		r.errorf("transport stdio does not go with url (leave transport out, or write command)")
	}
	if !r.has("httpUrl") {
		return written
	}
	if written == SSE {
		r.errorf("transport sse does not go with httpUrl (write url)")
	}
	return StreamableHTTP
}

// transport reads transport and the type of other clients.
func (r *serverReader) transport() Transport {
	var written, pasted string
	r.setOneOf("transport", &written, string(Stdio), string(StreamableHTTP), string(SSE))
	if v, there := r.foreign("type"); there {
		kind, _ := v.oneOf("http", "sse", "stdio", "streamable-http", "streamableHttp", "streamable_http")
		switch kind {
		case "":
		case "sse", "stdio":
			pasted = kind
		default:
			pasted = string(StreamableHTTP)
		}
		if pasted != "" && written != "" && pasted != written {
			v.errorf("differs from transport %s (keep transport)", written)
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
		if v, there := r.find(key); there {
			v.errorf("does not go with %s (leave it out)", with)
		}
	}
}

// process reads what belongs to command.
func (r *serverReader) process() {
	s := r.s
	if v, there := r.get("command"); there {
		if raw, ok := v.filled(); ok {
			s.Command, ok = r.expanded(v, raw, "command", false)
			if ok && strings.TrimSpace(s.Command) == "" {
				r.x.fail(v, "command is empty")
			}
		}
	}
	if v, there := r.get("args"); there {
		s.HasArgs = true
		s.Args = r.args(v)
		r.identify("args", "written") // without them command may be a line for the shell
	}
	if v, there := r.get("env"); there {
		s.Env = r.variables(v)
	}
	if v, there := r.get("inherit_env"); there {
		s.InheritEnv = r.inherited(v)
		r.identify("inherit_env", fmt.Sprintf("%q", s.InheritEnv))
	}
	if v, there := r.get("cwd"); there {
		s.Cwd, _ = r.x.file(v)
		r.identify("cwd", s.Cwd)
	}
}

// expanded returns raw expanded, "" if that cannot be. The hash covers it: as
// written if it cannot be expanded today. secret: its name says that it is one.
func (r *serverReader) expanded(v value, raw, key string, secret bool) (string, bool) {
	r.checkLiteral(v, raw, secret)
	s, ok := r.x.expand(v, raw)
	if ok {
		r.identify(key, s)
	} else {
		r.identify(key, raw)
	}
	return s, ok
}

func (r *serverReader) args(v value) []string {
	items, _ := v.list()
	out := make([]string, 0, len(items))
	for i, item := range items {
		if raw, ok := item.text(); ok {
			s, _ := r.expanded(item, raw, fmt.Sprintf("args[%d]", i), secretOption.MatchString(raw))
			out = append(out, s)
		}
	}
	return out
}

func (r *serverReader) variables(v value) []Var {
	entries, _ := v.entries()
	var out []Var
	for _, e := range entries {
		raw, ok := e.text()
		if !ok {
			continue
		}
		if e.key == "" || strings.ContainsAny(e.key, "=\x00") {
			e.errorf("no legal name of an environment variable")
			continue
		}
		r.checkLiteral(e.value, raw, secretVariable.MatchString(e.key))
		if s, ok := r.x.expand(e.value, raw); ok {
			out = append(out, Var{e.key, NewSecret(s)})
		}
		r.identify("env."+e.key, raw)
	}
	return out
}

func (r *serverReader) inherited(v value) []string {
	items, _ := v.list()
	var out []string
	for _, item := range items {
		name, ok := item.filled()
		if !ok {
			continue
		}
		if !isVariable(name) {
			item.errorf("no name of an environment variable (want one such as SSH_AUTH_SOCK)")
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
		v, there := r.find("enabled_tools")
		if !there {
			v, _ = r.find("includeTools")
		}
		v.errorf("is empty: that could mean all or none (leave it out for all; enabled: false for none)")
	}
	r.s.DisabledTools = r.patterns("disabled_tools", "excludeTools")
}

func (r *serverReader) patterns(key, alien string) []string {
	v, there := r.get(key)
	if pasted, too := r.foreign(alien); too {
		if there {
			pasted.errorf("both %s and %s (keep %[1]s)", key, alien)
		}
		v, there = pasted, true
	}
	if !there {
		return nil
	}
	list, ok := v.texts()
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
