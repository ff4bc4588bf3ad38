package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"

	"github.com/mainstem-mcp/mainstem/config"
)

const schemaFile = "mainstem.schema.json"

func compile(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	schema, err := compiler.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestExample(t *testing.T) {
	const example = "../config.example.yaml"
	c, err := config.Load([]string{example}, environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Warnings) > 0 {
		t.Errorf("warnings: %v", config.Problems(c.Warnings))
	}
	self, _ := os.Executable()
	for i, name := range []string{"notes", "calendar"} {
		s := c.Servers[i]
		if s.Name != name || s.Command != self || strings.Join(s.Args, " ") != "demo "+name || s.Failed != "" {
			t.Errorf("got %+v", s)
		}
	}
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(data), "\n")
	path, ok := strings.CutPrefix(first, "# yaml-language-server: $schema=")
	named, err := os.Stat(filepath.Join("..", path))
	if !ok || err != nil {
		t.Fatalf("the first line is %q: %v", first, err)
	}
	if ours, err := os.Stat(schemaFile); err != nil || !os.SameFile(ours, named) {
		t.Errorf("the first line names %s, %v", path, err)
	}
	if err := validate(t, compile(t), string(data)); err != nil {
		t.Error(err)
	}
}

// TestExampleOptions uncomments every option that the example shows.
func TestExampleOptions(t *testing.T) {
	data, err := os.ReadFile("../config.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		shown := strings.TrimRight(line, "\n")
		if strings.Contains(line, "yaml-language-server:") {
			continue
		}
		for range 2 { // "#   # key: value" is an alternative: left as a comment
			indent := len(shown) - len(strings.TrimLeft(shown, " "))
			rest, commented := strings.CutPrefix(shown[indent:], "# ")
			if commented && !strings.HasPrefix(strings.TrimSpace(rest), "#") && isOption(strings.TrimSpace(rest)) {
				shown = shown[:indent] + rest
			}
		}
		out = append(out, shown)
	}
	text := strings.Join(out, "\n")
	c := loaded(t, text, map[string]string{"TEAM": "t", "GITHUB_TOKEN": "g"})
	if len(c.Servers) != 5 || c.PublicURL == "" {
		t.Errorf("%d servers:\n%s", len(c.Servers), text)
	}
	if err := validate(t, compile(t), text); err != nil {
		t.Error(err)
	}
}

// isOption tells "key: value" from prose.
func isOption(s string) bool {
	key, _, ok := strings.Cut(s, ":")
	return ok && !strings.ContainsAny(key, " $") && !strings.HasPrefix(s, "http")
}

func validate(t *testing.T, schema *jsonschema.Schema, text string) error {
	t.Helper()
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		t.Fatal(err)
	}
	return schema.Validate(plain(t, &node))
}

// plain turns YAML into what a JSON decoder would give.
func plain(t *testing.T, n *yaml.Node) any {
	t.Helper()
	switch n.Kind {
	case yaml.DocumentNode:
		return plain(t, n.Content[0])
	case yaml.MappingNode:
		out := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			out[n.Content[i].Value] = plain(t, n.Content[i+1])
		}
		return out
	case yaml.SequenceNode:
		out := []any{}
		for _, item := range n.Content {
			out = append(out, plain(t, item))
		}
		return out
	}
	if tag := n.ShortTag(); tag == "!!str" || tag == "!!timestamp" {
		return n.Value
	}
	var v any
	if err := n.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestSchemaAndDecoderAgree(t *testing.T) {
	schema := compile(t)
	env := map[string]string{"T": "x", "H": "https://h.example"}
	for _, good := range agreedGood {
		if _, err := load(t, good, env); err != nil {
			t.Errorf("decoder: %v\n%s", err, good)
		}
		if err := validate(t, schema, good); err != nil {
			t.Errorf("schema: %v\n%s", err, good)
		}
	}
	for _, bad := range agreedBad {
		if _, err := load(t, bad, env); err == nil {
			t.Errorf("the decoder takes\n%s", bad)
		}
		if err := validate(t, schema, bad); err == nil {
			t.Errorf("the schema takes\n%s", bad)
		}
	}
}

// server makes a document of one entry.
func server(entry string) string { return "mcpServers: {a: {" + entry + "}}" }

// remote makes a document of one server over HTTP.
func remote(more string) string { return server("url: 'https://h.example/mcp', " + more) }

var agreedGood = []string{
	"{}", "mcpServers: {}", "servers: {a: {command: x}}", "$schema: x",
	server("command: x"), remote("timeout: 1s"), remote("timeout: 300"), remote("timeout: 1.5"), remote("timeout: 1m30s"),
	server("url: '${H}/mcp'"), server("url: 'http://127.0.0.1:1/mcp?x=1'"), server("url: HTTPS://h.example"),
	server("httpUrl: 'https://h.example/'"), server("httpUrl: 'https://h.example/', type: http"),
	server("command: x, type: stdio"), server("command: x, transport: stdio, type: stdio, args: [], env: {A: b}, inherit_env: [A_1], cwd: /"),
	remote("transport: sse, type: sse"), remote("transport: streamable_http, type: http"), remote("type: streamableHttp"),
	remote("headers: {X-A: b, Y: ''}"), remote("bearer_token_env_var: T"), remote("auth: {type: none}"),
	remote("auth: {type: header, credential_env_var: T, scheme: '', header: X-K}"), remote("auth: {type: header, credential_file: x}"),
	remote("auth: {type: oauth}"), remote("auth: {type: oauth, registration: manual, client_id: x, client_secret_env_var: T, token_endpoint_auth_method: client_secret_basic}"),
	remote("auth: {type: oauth, client_metadata_url: 'https://h.example/x', scopes: [a, 'b:c'], authorization_params: {prompt: consent}, token_params: {audience: x}}"),
	remote("auth: {type: oauth, client_id: x, require_refresh_token: true}"),
	remote("auth: {type: client_credentials, client_id: x, client_secret_file: f, token_endpoint_auth_method: client_secret_post, token_params: {a: b}}"),
	remote("auth: {type: client_credentials, client_id: x, private_key_file: f, token_endpoint_auth_method: private_key_jwt, scopes: [a]}"),
	remote("protocol_version: 2026-07-28"), remote("protocol_version: legacy, session: shared, schema: passthrough, output: text"),
	remote("enabled_tools: [a, 'b*'], disabled_tools: []"), remote("includeTools: [a], excludeTools: [], disabled: true"),
	remote("tools: {a: {}, 'b c': {name: x, title: '', description: '', meta: {a: [null, 1.5]}}}"),
	remote("trust: true, alwaysAllow: [], autoApprove: x, gallery: {}, version: 1"),
	remote("max_response_bytes: 1, cache_ttl: 60"), remote("max_response_bytes: 5.0"),
	"mcpServerUrl: 'https://h.example/x'\nmcpServers: {a: {}, b: {headers: {A: b}}, c: {command: x}, d: {transport: sse}}", "mcpServerUrl: '${H}/x'",
	"listen: 127.0.0.1:0", "listen: '[::1]:80'", "listen: ':80'\ninsecure_no_auth: true",
	"allowed_origins: ['https://a.example', 'http://b.example:80', 'vscode-webview://x']", "public_url: https://h.example/a",
	"state_dir: ~/x", "log: {level: debug, format: console}", "naming: {mode: never, max_length: 128, charset: mcp, reserved: [a]}",
	"limits: {max_request_bytes: 1, max_sessions: 1, session_idle: 60, first_list_wait: 0, max_call_duration: 24h, max_processes: 1}",
	"network: {allow_private: [10.0.0.0/8, '::1']}",
}

var agreedBad = []string{
	"[]", "x", "unknown: 1", "views: {}", "auth: {}", "console: {}", "inputs: []", "limits: {breaker: {}}", "limits: {per_server: {}}",
	"mcpServers: []", "mcpServers: null", "mcpServers: {a: null}", "mcpServers: {a: []}", "mcpServers: {}\nservers: {}",
	"mcpServers: {a__b: {command: x}}", "mcpServers: {_a: {command: x}}", "mcpServers: {'': {command: x}}",
	server(""), server("description: x"), server("command: x, url: 'https://h.example/'"), server("command: x, httpUrl: 'https://h.example/'"),
	server("url: 'https://h.example/', httpUrl: 'https://h.example/'"), server("command: ''"), server("command: [x]"), server("command: x, disabled_tool: [a]"),
	server("command: x, transport: sse"), server("command: x, type: http"), server("command: x, headers: {}"), server("command: x, bearer_token_env_var: T"),
	server("command: x, auth: {type: none}"), server("args: [x]"), server("transport: stdio"), server("command: x, envFile: x"), server("command: x, transport: http"),
	server("command: x, args: [1]"), server("command: x, args: x"), server("command: x, env: {A: 1}"), server("command: x, env: {'A=': x}"), server("command: x, env: []"),
	server("command: x, inherit_env: [A-B]"), server("command: x, cwd: ''"), server("command: x, enabled: 'yes'"), server("command: x, enabled: true, disabled: false"),
	server("url: 'ftp://h.example/'"), server("url: h.example"), server("url: 'https://h.example/#x'"), server("url: ''"), server("url: 5"), server("serverUrl: 'https://h.example/'"),
	remote("transport: stdio"), remote("type: stdio"), remote("type: websocket"), remote("transport: sse, type: http"), remote("transport: streamable_http, type: sse"),
	remote("args: []"), remote("env: {}"), remote("inherit_env: []"), remote("cwd: /"), server("httpUrl: 'https://h.example/', transport: sse"), server("httpUrl: 'https://h.example/', type: sse"),
	remote("headers: {'X Y': a}"), remote("headers: {A: 5}"), remote("headers: {'': a}"), remote("bearer_token_env_var: '${T}'"), remote("bearer_token_env_var: T, auth: {type: none}"),
	remote("auth: {}"), remote("auth: {type: basic}"), remote("auth: {type: none, header: X}"), remote("auth: {type: header}"), remote("auth: {type: header, credential_env_var: T, credential_file: x}"),
	remote("auth: {type: header, credential_env_var: T, header: 'X Y'}"), remote("auth: {type: header, credential_env_var: T, scopes: []}"), remote("auth: {type: header, credential: x}"),
	remote("auth: {type: header, credential_env_var: T, scheme: 'é'}"), remote("auth: {type: oauth, credential_env_var: T}"), remote("auth: {type: oauth, registration: manual}"),
	remote("auth: {type: oauth, registration: dynamic, client_id: x}"), remote("auth: {type: oauth, registration: manual, client_id: x, client_metadata_url: 'https://h.example/x'}"),
	remote("auth: {type: oauth, client_secret_env_var: T}"), remote("auth: {type: oauth, client_id: x, client_secret_env_var: T, client_secret_file: x}"), remote("auth: {type: oauth, private_key_file: x}"),
	remote("auth: {type: oauth, token_endpoint_auth_method: private_key_jwt}"), remote("auth: {type: oauth, client_id: x, token_endpoint_auth_method: client_secret_basic}"),
	remote("auth: {type: oauth, client_metadata_url: 'http://h.example/x'}"), remote("auth: {type: oauth, client_metadata_url: 'https://h.example/'}"), remote("auth: {type: oauth, scopes: a}"),
	remote("auth: {type: oauth, scopes: ['a b']}"), remote("auth: {type: oauth, authorization_params: {State: x}}"), remote("auth: {type: oauth, token_params: {resource: x}}"),
	remote("auth: {type: oauth, authorization_params: {prompt: 1}}"), remote("auth: {type: oauth, token_params: {'': x}}"), remote("auth: {type: oauth, require_refresh_token: 'yes'}"),
	remote("auth: {type: client_credentials, client_id: x}"), remote("auth: {type: client_credentials, client_secret_env_var: T}"), remote("auth: {type: client_credentials, client_id: x, client_secret_env_var: T, private_key_file: f}"),
	remote("auth: {type: client_credentials, client_id: x, client_secret_env_var: T, registration: auto}"), remote("auth: {type: client_credentials, client_id: x, client_secret_env_var: T, token_endpoint_auth_method: private_key_jwt}"),
	remote("auth: {type: client_credentials, client_id: x, client_secret_env_var: T, token_endpoint_auth_method: none}"), remote("auth: {type: client_credentials, client_id: x, private_key_file: f, token_endpoint_auth_method: client_secret_post}"),
	remote("protocol_version: 2025-11-25"), remote("timeout: 0"), remote("timeout: 301"), remote("timeout: 30000"), remote("timeout: soon"), remote("timeout: '30'"), remote("timeout: -1s"), remote("timeout: null"),
	remote("max_response_bytes: 0"), remote("max_response_bytes: 1.5"), remote("max_response_bytes: 5MB"), remote("cache_ttl: 59"), remote("session: one"), remote("schema: none"), remote("output: raw"),
	remote("enabled_tools: []"), remote("enabled_tools: x"), remote("enabled_tools: ['']"), remote("includeTools: []"), remote("enabled_tools: [a], includeTools: [a]"), remote("disabled_tools: [a], excludeTools: [a]"),
	remote("tools: {a: {nam: x}}"), remote("tools: {a: {name: ''}}"), remote("tools: {'': {}}"), remote("tools: {a: {meta: []}}"), remote("tools: {a: x}"), remote("description: 5"),
	"mcpServerUrl: 'https://h.example/x'\nmcpServers: {a: {args: [x]}}", "mcpServerUrl: ''", "mcpServerUrl: ftp://x", "mcpServerUrl: 'https://h.example/x'\nmcpServers: {a: {transport: stdio}}",
	"listen: 8390", "listen: 127.0.0.1", "listen: 'h:x'", "listen: 127.0.0.1:080", "insecure_no_auth: 1", "allowed_origins: x", "allowed_origins: ['*']", "allowed_origins: ['https://a.example/']", "allowed_origins: [a.example]",
	"public_url: h.example", "public_url: 'https://h.example/?x'", "public_url: 'https://u@h.example/'", "state_dir: ''", "log: {level: loud}", "log: {file: x}", "log: debug",
	"naming: {mode: x}", "naming: {max_length: 23}", "naming: {max_length: 129}", "naming: {charset: utf8}", "naming: {reserved: x}",
	"limits: {max_request_bytes: 0}", "limits: {max_sessions: 0}", "limits: {session_idle: 59}", "limits: {first_list_wait: 61}", "limits: {first_list_wait: -1}", "limits: {max_call_duration: 86401}", "limits: {max_processes: 0}",
	"network: {allow_private: [intranet]}", "network: {allow_private: 10.0.0.0/8}", "network: {allow: []}",
}
