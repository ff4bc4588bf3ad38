package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/config"
)

func TestC01BadEntryIsNamed(t *testing.T) {
	refused(t, `
mcpServers:
  a: {command: x}
  broken: {description: nothing to run}
  c: {url: https://h.example/mcp}
`, nil, ":4: mcpServers.broken: ", "command", "url")
}

func TestC02TransportIsInferred(t *testing.T) {
	tests := []struct {
		name, entry string
		want        config.Transport
	}{
		{"url alone", `{url: "http://127.0.0.1:1/mcp"}`, config.Auto},
		{"command alone", `{command: x}`, config.Stdio},
		{"written", `{url: "http://127.0.0.1:1/mcp", transport: sse}`, config.SSE},
		{"type of other clients", `{url: "http://127.0.0.1:1/mcp", type: http}`, config.StreamableHTTP},
		{"type stdio", `{command: x, type: stdio}`, config.Stdio},
		{"httpUrl", `{httpUrl: "http://127.0.0.1:1/mcp"}`, config.StreamableHTTP},
		{"both words", `{url: "http://127.0.0.1:1/mcp", type: http, transport: streamable_http}`, config.StreamableHTTP},
	}
	for _, test := range tests {
		if got := only(t, "mcpServers: {a: "+test.entry+"}", nil).Transport; got != test.want {
			t.Errorf("%s: %s is %s, want %s", test.name, test.entry, got, test.want)
		}
	}
}

func TestC03BothCommandAndURL(t *testing.T) {
	refused(t, `mcpServers: {two: {command: x, url: "https://h.example/"}}`, nil, `"two"`, "command", "url")
	refused(t, `mcpServers: {two: {command: x, httpUrl: "https://h.example/"}}`, nil, `"two"`, "command", "url")
}

func TestC04MisspeltKey(t *testing.T) {
	tests := []struct{ name, text, key, right string }{
		{"a letter missing", "mcpServers:\n  a: {command: x, disabled_tool: [delete]}", "disabled_tool", "disabled_tools"},
		{"another client's word", "mcpServers:\n  a: {serverUrl: 'https://h.example/'}", "serverUrl", "url"},
		{"camel case", "mcpServers:\n  a: {url: 'https://h.example/', bearerTokenEnvVar: T}", "bearerTokenEnvVar", "bearer_token_env_var"},
		{"letters swapped", "mcpServers:\n  a: {command: x, dsecription: y}", "dsecription", "description"},
		{"at the top", "mcpServers: {}\nlog_level: debug", "log_level", "log"},
		{"top, near", "mcpServer: {}\nmcpservers: {}", "mcpservers", "mcpServers"},
		{"below", "mcpServers: {}\nlog: {levle: debug}", "levle", "level"},
		{"in auth", "mcpServers:\n  a: {url: 'https://h.example/', auth: {type: header, credential: abc}}", `"credential"`, "credential_env_var"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			refused(t, test.text, nil, "unknown key", test.key, test.right, ".yaml:2: ")
		})
	}
}

func TestC05DuplicateServer(t *testing.T) {
	refused(t, "mcpServers:\n  docs: {command: a}\n  docs: {command: b}\n", nil, ":3: mcpServers.docs: ", "duplicate", "line 2")
}

func TestC07VariablesAreExpanded(t *testing.T) {
	env := map[string]string{"T": "tok", "H": "h.example"}
	s := only(t, `mcpServers: {a: {url: "https://${H}/mcp", headers: {Authorization: "Bearer ${T}"}}}`, env)
	if s.URL != "https://h.example/mcp" || s.Headers[0].Value.Reveal() != "Bearer tok" {
		t.Errorf("got %s, %s", s.URL, s.Headers[0].Value.Reveal())
	}
	s = only(t, `mcpServers: {a: {command: "${T}-cmd", args: ["--k=${T}", "$T", "$${T}"], env: {X: "${T}!"}, cwd: "/srv/${T}"}}`, env)
	got := fmt.Sprint(s.Command, s.Args, s.Env[0].Value.Reveal(), s.Cwd)
	if want := "tok-cmd[--k=tok $T ${T}]tok!/srv/tok"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestC08UnsetVariableFailsThatServerAlone(t *testing.T) {
	c := loaded(t, `
mcpServers:
  header: {url: "https://h.example/", headers: {Authorization: "Bearer ${T}"}}
  bearer: {url: "https://h.example/", bearer_token_env_var: NOPE}
  auth: {url: "https://h.example/", auth: {type: header, credential_env_var: NOPE}}
  two: {command: x, args: ["${X1}"], env: {A: "${X0}"}}
  empty: {url: "https://h.example/", bearer_token_env_var: EMPTY}
  blank: {url: "https://h.example/", headers: {Authorization: "Bearer ${EMPTY}"}}
  fine: {command: x}
`, map[string]string{"EMPTY": " "})
	want := []string{
		"environment variable T is not set", "environment variable NOPE is not set", "environment variable NOPE is not set",
		"environment variables X1 and X0 are not set", "environment variable EMPTY is empty", "header Authorization has an empty value", "",
	}
	for i, s := range c.Servers {
		if s.Failed != want[i] {
			t.Errorf("%s: failed %q, want %q", s.Name, s.Failed, want[i])
		}
		if s.Auth.Credential.Reveal() != "" {
			t.Errorf("%s: has a credential", s.Name)
		}
	}
	warned(t, c, ":3: mcpServers.header.headers.Authorization: warning: ", "T is not set")
	warned(t, c, ":4: mcpServers.bearer.bearer_token_env_var: warning: ", "NOPE is not set")
}

func TestC10BadHeaderValue(t *testing.T) {
	for _, value := range []string{"sec\nret", "sec\r\nX-Evil: ret", "sec–ret", "sec…ret", "sec\tret", "sec\x7fret"} {
		for _, text := range []string{
			`mcpServers: {srv: {url: "https://h.example/", headers: {X-Token: "${V}"}}}`,
			`mcpServers: {srv: {url: "https://h.example/", auth: {type: header, header: X-Token, credential_env_var: V}}}`,
		} {
			report := refused(t, text, map[string]string{"V": value}, `"srv"`, "X-Token")
			if strings.Contains(report, "sec") || strings.Contains(report, "ret") {
				t.Errorf("the report shows the value: %s", report)
			}
		}
	}
	refused(t, `mcpServers: {srv: {url: "https://h.example/", headers: {"X Token": a}}}`, nil, "srv", "X Token")
	refused(t, `mcpServers: {srv: {url: "https://h.example/", auth: {type: header, header: "X:Y", credential_env_var: V}}}`, nil, "srv")
	s := only(t, `mcpServers: {srv: {url: "https://h.example/", headers: {X-Token: "${V}"}}}`, map[string]string{"V": " \tabc\r\n"})
	if got := s.Headers[0].Value.Reveal(); got != "abc" {
		t.Errorf("got %q, want it trimmed", got)
	}
}

func TestC26DenyWins(t *testing.T) {
	s := only(t, `mcpServers: {a: {command: x, enabled_tools: [t, u], disabled_tools: [t]}}`, nil)
	if s.Allows("t") || !s.Allows("u") {
		t.Error("disabled_tools does not win")
	}
}

func TestC192ListensOnLoopbackOnly(t *testing.T) {
	if got := loaded(t, "mcpServers: {a: {command: x}}", nil).Listen; got != "127.0.0.1:8390" {
		t.Errorf("listens on %s", got)
	}
	for _, addr := range []string{"0.0.0.0:8390", ":8390", "[::]:8390", "192.168.1.5:80", "mcp.example.com:80", "x.localhost:80", "[::ffff:10.0.0.1]:80"} {
		refused(t, fmt.Sprintf("listen: %q\nmcpServers: {a: {command: x}}", addr), nil, ":1: listen: ", "insecure_no_auth")
		c := loaded(t, fmt.Sprintf("listen: %q\ninsecure_no_auth: true\nmcpServers: {a: {command: x}}", addr), nil)
		if c.Listen != addr || !c.InsecureNoAuth {
			t.Errorf("%s: listens on %s", addr, c.Listen)
		}
		warned(t, c, "listen: ", "insecure_no_auth")
		if config.CheckListen(addr, false) == nil || config.CheckListen(addr, true) != nil {
			t.Errorf("CheckListen(%s) disagrees", addr)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:8390", "[::1]:1", "127.1.2.3:65535"} {
		loaded(t, fmt.Sprintf("listen: %q\nmcpServers: {a: {command: x}}", addr), nil)
		if err := config.CheckListen(addr, false); err != nil {
			t.Error(err)
		}
	}
	for _, addr := range []string{"8390", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:http", "h:-1", "http://h:1", ""} {
		refused(t, fmt.Sprintf("listen: %q\nmcpServers: {a: {command: x}}", addr), nil, ":1: listen: ", "HOST:PORT")
	}
}

func TestC197SecretsAreNotPrinted(t *testing.T) {
	env := map[string]string{"S1": "unique-one", "S2": "unique-two", "S3": "unique-three"}
	c := loaded(t, `
mcpServers:
  http: {url: "https://user:unique-four@h.example/mcp?key=${S1}", headers: {X-Key: "${S2}"}}
  bearer: {url: "https://h.example/", bearer_token_env_var: S3}
  child: {command: x, env: {K: "${S2}"}}
`, env)
	shown := fmt.Sprintf("%v", config.Problems(c.Warnings))
	for _, s := range c.Servers {
		shown += fmt.Sprintf("%s %v %+v %#v %v %s %s", s.ShownURL, s.Headers, s.Auth, s.Env, s.Failed, s.Hash, s.Place)
	}
	if strings.Contains(shown, "unique") {
		t.Errorf("printed:\n%s", shown)
	}
	if c.Servers[0].ShownURL != "https://h.example/mcp" {
		t.Errorf("shown as %s", c.Servers[0].ShownURL)
	}
}

func TestC199ReportsShowNoSecret(t *testing.T) {
	for _, text := range []string{
		`mcpServers: {a: {url: "ftp://u:unique@h/?k=unique"}}`,
		`mcpServers: {a: {url: "https://u:unique@h:99999/?k=unique"}}`,
		`mcpServers: {a: {url: "https://h/%zz?k=unique"}}`,
		`mcpServers: {a: {url: "https://h/", bearer_token_env_var: "unique value"}}`,
		`mcpServers: {a: {url: "https://h/", headers: {A: "unique…"}}}`,
		`mcpServers: {a: {url: "https://h/", headers: {A: "${unique value"}}}`,
		`mcpServers: {a: {command: x, env: {A: {unique: 1}}}}`,
	} {
		if report := refused(t, text, nil); strings.Contains(report, "unique") && !strings.Contains(text, "{unique") {
			t.Errorf("the report shows the value: %s", report)
		}
	}
}

func TestC200EnvironmentIsDeclared(t *testing.T) {
	s := only(t, `mcpServers: {a: {command: x, env: {A: "1"}, inherit_env: [SSH_AUTH_SOCK]}}`, map[string]string{"SECRET": "1"})
	if len(s.Env) != 1 || s.Env[0].Name != "A" || fmt.Sprint(s.InheritEnv) != "[SSH_AUTH_SOCK]" {
		t.Errorf("got %v and %v", s.Env, s.InheritEnv)
	}
	refused(t, `mcpServers: {a: {command: x, inherit_env: ["A=1"]}}`, nil, "inherit_env[0]")
	refused(t, `mcpServers: {a: {command: x, env: {"A=B": "1"}}}`, nil, "env")
}
