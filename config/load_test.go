package config_test

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/naming"
)

func TestDefaults(t *testing.T) {
	c := loaded(t, "mcpServers: {a: {command: run it, args: []}}", nil)
	s := *c.Servers[0]
	s.Place, s.Hash = "", ""
	want := config.Server{Name: "a", Enabled: true, Transport: config.Stdio, Command: "run it", Args: []string{}, HasArgs: true,
		Auth: config.Auth{Type: config.AuthNone}, ProtocolVersion: "auto", Timeout: 30 * time.Second, MaxResponseBytes: 5242880,
		CacheTTL: time.Hour, Session: "auto", Schema: "flatten", Output: "mixed"}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	limits := config.Limits{MaxRequestBytes: 4194304, MaxSessions: 10000, SessionIdle: 30 * time.Minute,
		FirstListWait: 3 * time.Second, MaxCallDuration: 15 * time.Minute, MaxProcesses: 64}
	if c.Limits != limits || c.Log != (config.Log{Level: "info", Format: "auto"}) || c.StateDir != "/home/someone/.local/state/mainstem" ||
		!reflect.DeepEqual(c.Naming, naming.Defaults()) || c.InsecureNoAuth || len(c.Warnings) > 0 {
		t.Errorf("got %+v", c)
	}
}

func TestEverythingIsRead(t *testing.T) {
	c := loaded(t, `
listen: "[::1]:99"
allowed_origins: ["https://App.example:443", "http://x.example:8080"]
public_url: https://mcp.example.com/base/
state_dir: ~/state
log: {level: trace, format: json}
naming: {mode: on_conflict, max_length: 24, charset: openkbs, reserved: [search]}
network: {allow_private: [10.1.2.3/8, "fd00::1"]}
limits: {max_request_bytes: 1000, max_sessions: 2, session_idle: 1h30m, first_list_wait: 0, max_call_duration: 24h, max_processes: 3}
mcpServers:
  a:
    description: Words
    enabled: false
    url: https://h.example/a%2Fb/mcp?key=1
    protocol_version: 2026-07-28
    auth: {type: header, header: X-Api-Key, scheme: "", credential_env_var: K}
    timeout: 300
    max_response_bytes: 100
    cache_ttl: 168h
    session: per_client
    schema: passthrough
    output: text
    disabled_tools: []
    tools: {"a.b": {name: c, title: "", meta: {z: 12345678901234567890, a: [1.50, null, true, "é<"], d: 2026-07-28}}}
`, map[string]string{"K": " key\n"})
	s := c.Servers[0]
	if s.URL != "https://h.example/a%2Fb/mcp?key=1" || s.ShownURL != "https://h.example/a%2Fb/mcp" || s.Enabled || s.Description != "Words" ||
		s.ProtocolVersion != "2026-07-28" || s.Timeout != 5*time.Minute || s.MaxResponseBytes != 100 || s.CacheTTL != 168*time.Hour ||
		s.Session != "per_client" || s.Schema != "passthrough" || s.Output != "text" || s.DisabledTools == nil || s.EnabledTools != nil {
		t.Errorf("got %+v", s)
	}
	if got := s.Auth.Credential.Reveal(); got != "key" || s.Auth.Header != "X-Api-Key" || s.Auth.CredentialEnv != "K" {
		t.Errorf("credential %q, %+v", got, s.Auth)
	}
	o := s.Tools["a.b"]
	if *o.Name != "c" || *o.Title != "" || o.Description != nil {
		t.Errorf("override %+v", o)
	}
	if got, want := string(o.Meta), `{"z":12345678901234567890,"a":[1.50,null,true,"é<"],"d":"2026-07-28"}`; got != want {
		t.Errorf("meta %s, want %s", got, want)
	}
	if c.PublicURL != "https://mcp.example.com/base" || c.StateDir != "/home/someone/state" || c.Listen != "[::1]:99" ||
		!slices.Equal(c.AllowedOrigins, []string{"https://app.example", "http://x.example:8080"}) ||
		!slices.Equal(c.AllowPrivate, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::1/128")}) {
		t.Errorf("got %+v", c)
	}
	if want := (config.Limits{MaxRequestBytes: 1000, MaxSessions: 2, SessionIdle: 90 * time.Minute, MaxCallDuration: 24 * time.Hour, MaxProcesses: 3}); c.Limits != want {
		t.Errorf("limits %+v", c.Limits)
	}
}

func TestOAuthIsRead(t *testing.T) {
	s := only(t, `
mcpServers:
  a:
    url: https://h.example/
    auth: {type: oauth, registration: manual, client_id: id, client_secret_env_var: S, scopes: [a, b],
           authorization_params: {access_type: offline}, token_params: {audience: x}, require_refresh_token: true,
           token_endpoint_auth_method: client_secret_post}
`, map[string]string{"S": " s3 "})
	o := s.Auth.OAuth
	if s.Auth.Type != config.AuthOAuth || o.Registration != "manual" || o.ClientID != "id" || o.ClientSecret.Reveal() != "s3" ||
		!slices.Equal(o.Scopes, []string{"a", "b"}) || !o.RequireRefreshToken || o.TokenEndpointAuthMethod != "client_secret_post" ||
		o.AuthorizationParams[0] != (config.Param{Name: "access_type", Value: "offline"}) || o.TokenParams[0].Name != "audience" {
		t.Errorf("got %+v", o)
	}
	s = only(t, `mcpServers: {a: {url: "https://h.example/", auth: {type: client_credentials, client_id: id, private_key_file: ~/k.pem}}}`, nil)
	if o := s.Auth.OAuth; o.PrivateKeyFile != "/home/someone/k.pem" || s.Auth.Type != config.AuthClientCredentials {
		t.Errorf("got %+v", o)
	}
}

func TestPastedEntry(t *testing.T) {
	c := loaded(t, `{"$schema": "x", "servers": {"a": {"type": "http", "url": "https://h.example/mcp", "disabled": true,
		"includeTools": ["x"], "excludeTools": ["y"], "trust": true, "alwaysAllow": [], "autoApprove": ["z"], "gallery": true, "version": "1"}}}`, nil)
	s := c.Servers[0]
	if s.Enabled || s.Transport != config.StreamableHTTP || !slices.Equal(s.EnabledTools, []string{"x"}) || !slices.Equal(s.DisabledTools, []string{"y"}) {
		t.Errorf("got %+v", s)
	}
	for _, key := range []string{"trust", "alwaysAllow", "autoApprove", "gallery", "version"} {
		warned(t, c, "servers.a."+key, "no effect")
	}
	refused(t, `{"servers": {"a": {"command": "x", "envFile": ".env", "args": ["${input:key}"], "timeout": 60000}}, "inputs": []}`, nil,
		"envFile", "under env", "${input:…}", "write ${NAME}", "milliseconds", "write 1m", "inputs")
}

func TestJSONEscapes(t *testing.T) {
	s := only(t, `{"mcpServers": {"a": {"command": "x", "description": "\ud83d\ude00 \\ud83d \u00e9\/\"\t"}}}`, nil)
	if want := "😀 \\ud83d é/\"\t"; s.Description != want {
		t.Errorf("got %q, want %q", s.Description, want)
	}
}

func TestMergeKeysAndAliases(t *testing.T) {
	c := loaded(t, `
mcpServers:
  a: &a {url: "https://h.example/", timeout: 5s, headers: &h {X: y}}
  b: {<<: *a, timeout: 6s}
  c: {<<: [*a, {session: shared}], headers: *h}
`, nil)
	if c.Servers[1].Timeout != 6*time.Second || c.Servers[1].URL != "https://h.example/" || c.Servers[2].Session != "shared" {
		t.Errorf("got %+v, %+v", c.Servers[1], c.Servers[2])
	}
}

func TestMCPServerURL(t *testing.T) {
	c := loaded(t, `
mcpServerUrl: ${BASE}/
mcpServers:
  one: {}
  two: {headers: {A: b}, transport: sse}
  own: {url: "https://o.example/x"}
  cmd: {command: x}
`, map[string]string{"BASE": "https://h.example/mcp"})
	var got []string
	for _, s := range c.Servers {
		got = append(got, s.URL+" "+string(s.Transport))
	}
	want := []string{"https://h.example/mcp/one auto", "https://h.example/mcp/two sse", "https://o.example/x auto", " stdio"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c = loaded(t, "mcpServerUrl: ${BASE}/\nmcpServers: {one: {}, cmd: {command: x}}", nil)
	if c.Servers[0].Failed != "environment variable BASE is not set" || c.Servers[1].Failed != "" {
		t.Errorf("failed %q, %q", c.Servers[0].Failed, c.Servers[1].Failed)
	}
	refused(t, "mcpServerUrl: ftp://x\nmcpServers: {}", nil, ":1: mcpServerUrl: ")
	if got := only(t, "mcpServerUrl: https://h/x?k=1\nmcpServers: {one: {}}", nil).URL; got != "https://h/x/one?k=1" {
		t.Errorf("got %s", got)
	}
}

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestFolderUnion(t *testing.T) {
	dir := folder(t, map[string]string{
		"10-b.yaml":  "listen: 127.0.0.1:1\nmcpServers: {b: {command: x}, shared: {command: y, env: {A: '1', B: '2'}, enabled_tools: [p, q]}}",
		"05-a.json":  `{"mcpServers": {"z": {"command": "x"}}, "listen": "127.0.0.1:1", "log": {"level": "warn", "format": "json"}}`,
		"20-c.yaml":  "log: {format: json, level: warn}\nservers: {shared: {type: stdio, command: y, env: {B: '2', A: '1'}, enabled_tools: [q, p]}, c: {command: x}}",
		"empty.yaml": "# nothing yet\n", "old.yml": "nonsense", "README.md": "nonsense", ".hidden.yaml": "nonsense",
	})
	c, err := config.Load([]string{dir}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range c.Servers {
		names = append(names, s.Name)
	}
	if want := []string{"z", "b", "shared", "c"}; !slices.Equal(names, want) {
		t.Errorf("servers %q, want %q", names, want)
	}
	if c.Listen != "127.0.0.1:1" || c.Log.Level != "warn" {
		t.Errorf("got %+v", c)
	}
	warned(t, c, "old.yml", "rename")
	if want := filepath.Join(dir, "10-b.yaml") + ":2"; c.Servers[1].Place != want {
		t.Errorf("place %s, want %s", c.Servers[1].Place, want)
	}
}

func TestUnionConflicts(t *testing.T) {
	base := "listen: 127.0.0.1:1\nmcpServers:\n  s: {command: x, description: d, enabled_tools: [a]}\n"
	tests := []struct{ name, other, want string }{
		{"same", "mcpServers: {s: {command: x, description: d, enabled_tools: [a]}}", ""},
		{"other connection", "mcpServers: {s: {command: y, description: d, enabled_tools: [a]}}", "mcpServers.s: differs"},
		{"other arguments", "mcpServers: {s: {command: x, args: [], description: d, enabled_tools: [a]}}", "mcpServers.s: differs"},
		{"other description", "mcpServers: {s: {command: x, enabled_tools: [a]}}", "mcpServers.s: differs"},
		{"other filters", "mcpServers: {s: {command: x, description: d}}", "mcpServers.s: differs"},
		{"other key", "listen: 127.0.0.1:2", "listen: differs"},
	}
	for _, test := range tests {
		dir := folder(t, map[string]string{"a.yaml": base, "b.yaml": test.other})
		_, err := config.Load([]string{filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")}, environment(nil))
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		for _, part := range []string{filepath.Join(dir, "b.yaml") + ":1: " + test.want, filepath.Join(dir, "a.yaml") + ":"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: got %v, want %q in it", test.name, err, part)
			}
		}
	}
	dir := folder(t, map[string]string{"a.yaml": base, "b.yaml": "mcpServers: {s: {command: x, description: d, enabled_tools: [a], timeout: 5s}}"})
	c, err := config.Load([]string{dir}, environment(nil))
	if err != nil || c.Servers[0].Timeout != 30*time.Second {
		t.Fatalf("got %+v, %v", c, err)
	}
	warned(t, c, "b.yaml:1: mcpServers.s: warning: ", "a.yaml:3")
}

func TestFilesThatCannotBeRead(t *testing.T) {
	for _, paths := range [][]string{nil, {filepath.Join(t.TempDir(), "missing.yaml")}, {t.TempDir()}} {
		if c, err := config.Load(paths, environment(nil)); err == nil {
			t.Errorf("%q: loaded %+v", paths, c)
		}
	}
}

func TestFilesAreRelativeToTheirConfiguration(t *testing.T) {
	dir := folder(t, map[string]string{
		"c.yaml": "state_dir: state\nmcpServers: {a: {command: x, cwd: sub/../work}, b: {url: 'https://h.example/', auth: {type: header, credential_file: token}}, " +
			"c: {url: 'https://h.example/', auth: {type: header, credential_file: gone}}}",
		"token": " abc\n",
	})
	if err := os.Chmod(filepath.Join(dir, "token"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load([]string{filepath.Join(dir, "c.yaml")}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if c.StateDir != filepath.Join(dir, "state") || c.Servers[0].Cwd != filepath.Join(dir, "work") {
		t.Errorf("got %s, %s", c.StateDir, c.Servers[0].Cwd)
	}
	if got := c.Servers[1].Auth.Credential.Reveal(); got != "Bearer abc" {
		t.Errorf("credential %q", got)
	}
	warned(t, c, "credential_file", "chmod 600")
	if !strings.HasPrefix(c.Servers[2].Failed, "credential file: ") {
		t.Errorf("failed %q", c.Servers[2].Failed)
	}
}

func TestLiteralSecretsAreWarnedOf(t *testing.T) {
	const token = "ghp_0123456789abcdefghijklmnop"
	for _, entry := range []string{
		`{url: "https://h.example/", headers: {Authorization: "Bearer abc"}}`,
		`{url: "https://h.example/", headers: {X-Whatever: "` + token + `"}}`,
		`{url: "https://h.example/", headers: {X-Api-Key: abc}}`,
		`{url: "https://u:p@h.example/"}`,
		`{url: "https://h.example/?k=` + token + `"}`,
		`{url: "https://h.example/?api_key=abc"}`,
		`{command: x, args: [--key, ` + token + `]}`,
		`{command: x, args: [--api-key=abc]}`,
		`{command: x, env: {ANY: ` + token + `}}`,
		`{command: x, env: {GITHUB_TOKEN: abc}}`,
		`{command: "x ` + token + `"}`,
		`{url: "https://h.example/", headers: {X-Whatever: "Bearer abcdef"}}`,
		`{command: x, args: [--header, "Authorization: Bearer abc"]}`,
		`{command: x, args: ["--header=authorization:abc"]}`,
		`{command: x, args: ["postgres://user:pass@h.example/db"]}`,
		`{command: x, env: {AUTH_HEADER: "Basic dXNlcjpwYXNz"}}`,
		`{command: x, env: {DATABASE_URL: "postgres://user:pass@h.example/db"}}`,
	} {
		c := loaded(t, "mcpServers:\n  a: "+entry, nil)
		warned(t, c, ":2: mcpServers.a.", "literal secret", "${VAR}")
		if got := config.Problems(c.Warnings).Error(); strings.Contains(got, token) {
			t.Errorf("shown: %s", got)
		}
	}
	for _, entry := range []string{
		`{url: "https://${U}@h.example/?key=${K}", headers: {Authorization: "Bearer ${T}", X-Team: blue}}`,
		`{command: x, args: [--key-file, /x, sk-short], env: {GITHUB_TOKEN: "${T}", LEVEL: info}}`,
		`{command: x, args: [--header, "Authorization: Bearer ${T}", "ssh://git@h.example/x", "basic auth"], env: {DB: "postgres://${U}:${K}@h.example/db"}}`,
	} {
		c := loaded(t, "mcpServers: {a: "+entry+"}", map[string]string{"U": "u", "K": "k", "T": "t"})
		if len(c.Warnings) > 0 {
			t.Errorf("%s: %v", entry, config.Problems(c.Warnings))
		}
	}
	path := write(t, "c.yaml", `mcpServers: {a: {url: "https://h.example/", headers: {Authorization: "Bearer abc"}}}`)
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load([]string{path}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	warned(t, c, path+":1: ", "read by others")
}

func TestHashFollowsTheConnection(t *testing.T) {
	hash := func(entry string, env map[string]string) string {
		return only(t, "mcpServers: {a: "+entry+"}", env).Hash
	}
	base := hash(`{url: "https://h.example/${P}", headers: {A: "${T}", B: c}, bearer_token_env_var: T}`, map[string]string{"T": "1", "P": "x"})
	same := []string{
		hash(`{bearer_token_env_var: T, headers: {b: c, A: "${T}"}, url: "https://h.example/${P}", timeout: 3, description: d, enabled_tools: [a]}`, map[string]string{"T": "2", "P": "x"}),
		hash(`{url: "https://h.example/${P}", headers: {A: "${T}", B: c}, bearer_token_env_var: T}`, map[string]string{"P": "x"}),
	}
	for i, h := range same {
		if h != base {
			t.Errorf("same %d: another hash", i)
		}
	}
	other := []string{
		hash(`{url: "https://h.example/${P}", headers: {A: "${T}", B: c}, bearer_token_env_var: T}`, map[string]string{"T": "1", "P": "y"}),
		hash(`{url: "https://h.example/${P}", headers: {A: "${T}", B: d}, bearer_token_env_var: T}`, map[string]string{"T": "1", "P": "x"}),
		hash(`{url: "https://h.example/${P}", headers: {A: "${T}", B: c}, bearer_token_env_var: T, protocol_version: legacy}`, map[string]string{"T": "1", "P": "x"}),
		hash(`{command: "https://h.example/x"}`, nil),
		hash(`{command: a b}`, nil), hash(`{command: a b, args: []}`, nil), hash(`{command: a b, args: [""]}`, nil), hash(`{command: a b, cwd: /}`, nil),
	}
	seen := map[string]bool{base: true}
	for i, h := range other {
		if seen[h] {
			t.Errorf("other %d: a hash seen before", i)
		}
		seen[h] = true
	}
}

func TestMainstemIsTheExecutable(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if got := only(t, `mcpServers: {a: {command: "${MAINSTEM}", args: [demo]}}`, map[string]string{"MAINSTEM": "/elsewhere"}).Command; got != self {
		t.Errorf("got %s, want %s", got, self)
	}
}

func TestTooManyServers(t *testing.T) {
	var text strings.Builder
	text.WriteString("mcpServers:\n")
	for i := range 1000 {
		fmt.Fprintf(&text, "  s%d: {command: x}\n", i)
	}
	loaded(t, text.String(), nil)
	text.WriteString("  more: {command: x}\n")
	refused(t, text.String(), nil, ":1002: mcpServers.more: ", "1000")
}

func TestPlainHTTPWarns(t *testing.T) {
	warned(t, loaded(t, `mcpServers: {a: {url: "http://h.example/"}}`, nil), "mcpServers.a.url: warning: plain http")
	for _, host := range []string{"127.0.0.1:1", "localhost", "[::1]:80", "a.localhost"} {
		if c := loaded(t, `mcpServers: {a: {url: "http://`+host+`/"}}`, nil); len(c.Warnings) > 0 {
			t.Errorf("%s: %v", host, c.Warnings)
		}
	}
}
