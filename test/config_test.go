package test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

// refused are files that must not start anything, with the texts that the message must hold.
var refused = []struct {
	name string
	text string
	want []string
}{
	{"C01 neither command nor url", "mcpServers:\n  one: {url: 'http://127.0.0.1:1/mcp'}\n  two: {description: nothing}\n  three: {command: cat}\n", []string{":3:", "two", "url", "command"}},
	{"C03 both command and url", "mcpServers:\n  both:\n    command: cat\n    url: http://127.0.0.1:1/mcp\n", []string{"both", "url", "command"}},
	{"C04 misspelt list", "mcpServers:\n  a:\n    command: cat\n    disabled_tool: [delete]\n", []string{":4:", "disabled_tool", "disabled_tools"}},
	{"C04 serverUrl", "mcpServers:\n  a:\n    serverUrl: http://127.0.0.1:1/mcp\n", []string{":3:", "serverUrl"}},
	{"C05 one name twice", "mcpServers:\n  docs: {command: cat}\n  docs: {command: tac}\n", []string{":3:", "docs"}},
	{"C10 line end in a header", "mcpServers:\n  a:\n    url: http://127.0.0.1:1/mcp\n    headers: {X-Team: \"tea\\nm-value\"}\n", []string{":4:", "a", "X-Team"}},
	{"C10 injected header", "mcpServers:\n  a:\n    url: http://127.0.0.1:1/mcp\n    headers: {X-Team: \"team-value\\r\\nX: y\"}\n", []string{":4:", "a", "X-Team"}},
	{"C10 no ASCII", "mcpServers:\n  a:\n    url: http://127.0.0.1:1/mcp\n    headers: {X-Team: \"team-value…\"}\n", []string{":4:", "a", "X-Team"}},
	{"F006 empty allow list", "mcpServers:\n  a: {command: cat, enabled_tools: []}\n", []string{":2:", "enabled_tools"}},
	{"unknown transport", "mcpServers:\n  a:\n    url: http://127.0.0.1:1/mcp\n    transport: stdoi\n", []string{":4:", "mcpServers.a.transport", "stdoi", "stdio", "streamable_http", "sse"}},
	{"several problems", "listne: x\nmcpServers:\n  a: {command: cat, timeout: 900s}\n  b__c: {command: cat}\n", []string{":1:", "listne", "listen", ":3:", "timeout", "900s", ":4:", "b__c"}},
	{"no YAML", "mcpServers: {a: {command: cat}\n", []string{"mainstem.yaml"}},
}

func TestConfigRefused(t *testing.T) {
	t.Parallel()
	for _, c := range refused {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, command := range []string{"serve", "validate"} {
				got := run.Command(t, run.Config{Text: c.text}, command)
				said := got.Stdout + got.Stderr
				if got.Code != 2 {
					t.Errorf("%s: exit code %d, want 2: %s", command, got.Code, said)
				}
				for _, want := range c.want {
					if !strings.Contains(said, want) {
						t.Errorf("%s: message lacks %q: %s", command, want, said)
					}
				}
				if strings.Contains(said, "m-value") {
					t.Errorf("%s: message shows the value: %s", command, said)
				}
			}
		})
	}
}

func TestC02TransportInferred(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("x")})
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"up__x"}) {
		t.Errorf("names = %v", got)
	}
	if got := m.Status("up").Transport; got != "streamable_http" {
		t.Errorf("transport = %q", got)
	}
}

func TestC07VariablesExpanded(t *testing.T) {
	t.Parallel()
	web, pipe := fake.HTTP(t, fake.Options{Tools: fake.Tools("x")}), fake.Stdio(t, fake.Options{Tools: fake.Tools("y")})
	config := run.Of(
		run.HTTP("web", web, fields{
			"url": strings.Replace(web.URL, "/mcp", "/${T}/mcp?k=${T}", 1), "headers": fields{"X-Key": "Bearer ${T}", "X-Other": "${U:-fallback}"},
		}),
		run.Stdio("pipe", pipe, fields{"args": append(slices.Clone(pipe.Command[1:]), "--t=${T}"), "env": fields{"GIVEN": "<${T}>"}}),
	)
	m := run.Start(t, config, "T=tee")
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"web__x", "pipe__y"}) {
		t.Errorf("names = %v", got)
	}
	for _, r := range web.Seen() {
		if r.URI != "/tee/mcp?k=tee" || r.Header.Get("X-Key") != "Bearer tee" || r.Header.Get("X-Other") != "fallback" {
			t.Errorf("%s %s with %v", r.HTTP, r.URI, r.Header)
		}
	}
	p := pipe.WaitProcesses(t, 1)[0]
	if !slices.Equal(p.Args, []string{"--t=tee"}) || !slices.Contains(p.Env, "GIVEN=<tee>") {
		t.Errorf("arguments %q, environment %q", p.Args, p.Env)
	}
}

func TestC08UnsetVariable(t *testing.T) {
	t.Parallel()
	entries := map[string]fields{
		"header": {"headers": fields{"Authorization": "Bearer ${MISSING_T}"}},
		"bearer": {"bearer_token_env_var": "MISSING_T"},
		"auth":   {"auth": fields{"type": "header", "credential_env_var": "MISSING_T"}},
	}
	for name, entry := range entries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad, good := fake.HTTP(t, fake.Options{Tools: fake.Tools("x")}), fake.HTTP(t, fake.Options{Tools: fake.Tools("x")})
			config := run.Of(run.HTTP("bad", bad, entry), run.HTTP("good", good))
			m := run.Start(t, config)
			if got := legacy(t, m).Names(); !slices.Equal(got, []string{"good__x"}) {
				t.Errorf("names = %v", got)
			}
			if got := m.Status("bad"); got.Status != "failed" || !strings.Contains(got.Error, "MISSING_T") {
				t.Errorf("status = %+v", got)
			}
			if seen := bad.Seen(); len(seen) > 0 {
				t.Errorf("the server received %s", seen[0].Method)
			}
			got := run.Command(t, config, "validate")
			if said := got.Stdout + got.Stderr; got.Code != 0 || !regexp.MustCompile(`mainstem\.yaml:\d+: .*warning: .*MISSING_T`).MatchString(said) {
				t.Errorf("validate: exit code %d: %s", got.Code, said)
			}
		})
	}
}

// TestC10SecretWithLineEnd has the bad value in a variable, where no editor shows it.
func TestC10SecretWithLineEnd(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"tok\nen-value", "tok\r\nX: y-value", "token-value…"} {
		s := fake.HTTP(t, fake.Options{Tools: fake.Tools("x")})
		config := run.Of(run.HTTP("up", s, fields{"bearer_token_env_var": "SECRET"}))
		cmd := run.Prepare(t, config, []string{"SECRET=" + secret}, "validate")
		out, _ := cmd.CombinedOutput()
		if said := string(out); !strings.Contains(said, "up") || !strings.Contains(said, "Authorization") || strings.Contains(said, "-value") {
			t.Errorf("%q: %s", secret, said)
		}
		if len(s.Seen()) > 0 {
			t.Errorf("%q: the server received something", secret)
		}
	}
}

// TestPlaceholders expands every vector in the environment of a child, which takes empty values too.
func TestPlaceholders(t *testing.T) {
	t.Parallel()
	type placeholder struct {
		ID       string
		Text     string
		Expected struct {
			Value   *string
			Unset   []string
			Mistake bool
		}
	}
	environment := []string{"TOKEN=abc", "EMPTY=", "A=1", "B=2", "NESTED=${TOKEN}", "DOLLAR=$A"}
	s := fake.Stdio(t, fake.Options{Tools: fake.Tools("x")})
	values := fields{}
	servers := []run.Server{run.Stdio("values", s, fields{"env": values})}
	all := vectors[placeholder](t, "behaviour.json", "placeholders")
	for _, v := range all {
		switch {
		case v.Expected.Value != nil:
			values["V_"+v.ID] = v.Text
		case v.Expected.Mistake:
			broken := run.Of(run.Stdio("broken", s, fields{"env": fields{"V": v.Text}}))
			if got := run.Command(t, broken, "validate"); got.Code != 2 || !strings.Contains(got.Stdout+got.Stderr, "mcpServers.broken") {
				t.Errorf("%s: %q: exit code %d: %s", v.ID, v.Text, got.Code, got.Stdout+got.Stderr)
			}
		default:
			servers = append(servers, run.Stdio(v.ID, s, fields{"env": fields{"V": v.Text}}))
		}
	}
	m := run.Start(t, run.Of(servers...), environment...)
	env := s.WaitProcesses(t, 1)[0].Env
	for _, v := range all {
		if v.Expected.Value != nil && !slices.Contains(env, "V_"+v.ID+"="+*v.Expected.Value) {
			t.Errorf("%s: %q was not expanded to %q", v.ID, v.Text, *v.Expected.Value)
		}
		for _, name := range v.Expected.Unset {
			if got := m.Status(v.ID); got.Status != "failed" || !strings.Contains(got.Error, name) {
				t.Errorf("%s: %q: status %+v, want failed with %s", v.ID, v.Text, got, name)
			}
		}
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	type credential struct {
		ID       string
		Scheme   string
		Secret   string
		Expected struct {
			Value string
			Error bool
		}
	}
	s := fake.HTTP(t, fake.Options{Tools: fake.Tools("x")})
	var servers []run.Server
	var env []string
	all := vectors[credential](t, "behaviour.json", "credentials")
	for _, v := range all {
		entry := run.HTTP(v.ID, s, fields{"url": s.URL + "/" + v.ID, "auth": fields{"type": "header", "scheme": v.Scheme, "credential_env_var": v.ID}})
		env = append(env, v.ID+"="+v.Secret)
		if !v.Expected.Error {
			servers = append(servers, entry)
			continue
		}
		out, _ := run.Prepare(t, run.Of(entry), []string{v.ID + "=" + v.Secret}, "validate").CombinedOutput()
		if said := string(out); !strings.Contains(said, v.ID) || !strings.Contains(said, "Authorization") || strings.Contains(said, "X-Evil") {
			t.Errorf("%s: %q: %s", v.ID, v.Secret, said)
		}
	}
	m := run.Start(t, run.Of(servers...), env...)
	legacy(t, m).Names()
	for _, v := range all {
		if v.Expected.Error {
			continue
		}
		m.WaitStatus(v.ID, "healthy")
		for _, r := range s.Seen() {
			if strings.HasSuffix(r.URI, v.ID) && r.Header.Get("Authorization") != v.Expected.Value {
				t.Errorf("%s: Authorization = %q, want %q", v.ID, r.Header.Get("Authorization"), v.Expected.Value)
			}
		}
	}
}

func TestFilters(t *testing.T) {
	t.Parallel()
	type filter struct {
		ID        string
		Tools     []string
		Config    fields
		Expected  json.RawMessage
		Unmatched []string
	}
	var servers []run.Server
	fakes := map[string]*fake.Server{}
	all := slices.DeleteFunc(vectors[filter](t, "behaviour.json", "filters"), func(v filter) bool {
		_, view := v.Config["selected_tools"]
		return view || strings.HasPrefix(string(v.Expected), `"`) // an error, in TestConfigRefused
	})
	for _, v := range all {
		fakes[v.ID] = fake.HTTP(t, fake.Options{Tools: fake.Tools(v.Tools...)})
		servers = append(servers, run.HTTP(v.ID, fakes[v.ID], v.Config))
	}
	m := run.Start(t, run.Of(servers...))
	legacy(t, m).Names()
	for _, v := range all {
		if v.Config["enabled"] == false {
			if got := m.Status(v.ID).Status; got != "disabled" || len(fakes[v.ID].Seen()) > 0 {
				t.Errorf("%s: status %s, received %v", v.ID, got, fakes[v.ID].Seen())
			}
			continue
		}
		var want []string
		if err := json.Unmarshal(v.Expected, &want); err != nil {
			t.Fatal(err)
		}
		slices.Sort(want)
		if got := enabledTools(t, m, v.ID); !slices.Equal(got, want) {
			t.Errorf("%s: %v: enabled = %q, want %q", v.ID, v.Config, got, want)
		}
		warnings := fmt.Sprint(m.Status(v.ID).Warnings)
		for _, name := range v.Unmatched {
			if !strings.Contains(warnings, name) {
				t.Errorf("%s: no warning about %q: %s", v.ID, name, warnings)
			}
		}
	}
}

// enabledTools returns the raw names of a server's tools that pass its filters, sorted.
func enabledTools(t *testing.T, m *run.Mainstem, server string) []string {
	t.Helper()
	code, body := m.Get("/api/v1/servers/" + server + "/tools")
	var list struct {
		Tools []struct {
			Name    string
			Enabled bool
		}
	}
	if err := json.Unmarshal(body, &list); err != nil || code != 200 {
		t.Fatalf("tools of %s: %d %s", server, code, body)
	}
	names := []string{}
	for _, tool := range list.Tools {
		if tool.Enabled {
			names = append(names, tool.Name)
		}
	}
	slices.Sort(names)
	return names
}

func TestServerNames(t *testing.T) {
	t.Parallel()
	type serverName struct {
		ID    string
		Name  string
		Valid bool
	}
	for _, v := range vectors[serverName](t, "naming.json", "server_names") {
		got := run.Command(t, run.Of(run.Server{Name: v.Name, Fields: fields{"command": "cat"}}), "validate")
		if (got.Code == 0) != v.Valid {
			t.Errorf("%s: %q: exit code %d, valid %v: %s", v.ID, v.Name, got.Code, v.Valid, got.Stdout+got.Stderr)
		}
	}
}

// TestDisabledStaysSilent also covers the /servers route of a server that nobody may use.
func TestDisabledStaysSilent(t *testing.T) {
	t.Parallel()
	off, on := fake.HTTP(t, fake.Options{Tools: fake.Tools("x")}), fake.HTTP(t, fake.Options{Tools: fake.Tools("y")})
	m := run.Start(t, run.Of(run.HTTP("off", off, fields{"enabled": false}), run.HTTP("on", on)))
	if got := legacy(t, m).Names(); !slices.Equal(got, []string{"on__y"}) {
		t.Errorf("names = %v", got)
	}
	if a := legacy(t, m).Tool("off__x", "{}"); a.Code() != -32602 {
		t.Errorf("call: %s%s", a.Result, a.Error)
	}
	if got := client.New(t, m.One("nobody"), client.Modern).Call("tools/list", "").Status; got != 404 {
		t.Errorf("an unknown server: status %d, want 404", got)
	}
	if seen := off.Seen(); len(seen) > 0 {
		t.Errorf("a disabled server received %s", seen[0].Method)
	}
}

// TestCheckOfADisabledServer looks at what stays behind of it: nothing.
func TestCheckOfADisabledServer(t *testing.T) {
	t.Parallel()
	off := fake.Stdio(t, fake.Options{Tools: fake.Tools("x")})
	m := run.Start(t, run.Of(run.Stdio("off", off, fields{"enabled": false})))
	for n := 1; n <= 2; n++ {
		code, body := m.Post("/api/v1/servers/off/check", "")
		if checked := oneCheck(t, body); code != 200 || !checked.OK || !slices.Equal(checked.ToolNames, []string{"x"}) {
			t.Errorf("check %d: %d %s", n, code, body)
		}
		if got := m.Status("off"); got.Status != "disabled" || got.Tools != 0 {
			t.Errorf("after check %d: %+v", n, got)
		}
		off.WaitProcesses(t, n)[n-1].WaitGone(t, soon)
	}
}
