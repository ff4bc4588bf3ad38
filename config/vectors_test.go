package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/config"
)

type vectors struct {
	Environment map[string]string
	Filters     []struct {
		ID        string
		Tools     []string
		Config    json.RawMessage
		Expected  json.RawMessage
		Unmatched []string
	}
	Placeholders []struct {
		ID, Text string
		Expected struct {
			Value   string
			Unset   []string
			Mistake bool
		}
	}
	Credentials []struct {
		ID, Scheme, Secret string
		Expected           struct {
			Value string
			Error bool
		}
	}
	ServerNames []struct {
		ID, Name string
		Valid    bool
	} `json:"server_names"`
}

func readVectors(t *testing.T) vectors {
	t.Helper()
	data, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	var v vectors
	decoder := json.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestPlaceholders(t *testing.T) {
	v := readVectors(t)
	env := func(name string) (string, bool) { s, ok := v.Environment[name]; return s, ok }
	for _, p := range v.Placeholders {
		got, unset, err := config.Expand(p.Text, env)
		if (err != nil) != p.Expected.Mistake {
			t.Errorf("%s: Expand(%q): error %v, want one: %v", p.ID, p.Text, err, p.Expected.Mistake)
		}
		if got != p.Expected.Value || !slices.Equal(unset, p.Expected.Unset) {
			t.Errorf("%s: Expand(%q) = %q, unset %q; want %q, %q", p.ID, p.Text, got, unset, p.Expected.Value, p.Expected.Unset)
		}
	}
}

func TestCredentials(t *testing.T) {
	for _, c := range readVectors(t).Credentials {
		text := fmt.Sprintf(`mcpServers: {srv: {url: "https://h.example/mcp", auth: {type: header, header: X-Key, scheme: %q, credential_env_var: SECRET}}}`, c.Scheme)
		env := map[string]string{"SECRET": c.Secret}
		if c.Expected.Error {
			report := refused(t, text, env, "srv", "X-Key")
			for _, part := range strings.Fields(c.Secret) {
				if len(part) > 1 && strings.Contains(report, part) {
					t.Errorf("%s: the report shows the value: %s", c.ID, report)
				}
			}
			continue
		}
		if got := only(t, text, env).Auth.Credential.Reveal(); got != c.Expected.Value {
			t.Errorf("%s: credential %q, want %q", c.ID, got, c.Expected.Value)
		}
	}
}

func TestFilters(t *testing.T) {
	for _, f := range readVectors(t).Filters {
		var keys map[string]json.RawMessage
		if err := json.Unmarshal(f.Config, &keys); err != nil {
			t.Fatal(err)
		}
		keys["command"] = json.RawMessage(`"x"`)
		entry, err := json.Marshal(keys)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf(`{"mcpServers": {"s": %s}}`, entry)
		var want []string
		if json.Unmarshal(f.Expected, &want) != nil {
			refused(t, text, nil, "mcpServers.s.enabled_tools")
			continue
		}
		s := only(t, text, nil)
		got := []string{}
		for _, name := range f.Tools {
			if s.Enabled && s.Allows(name) {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s lets %q pass, want %q", f.ID, f.Config, got, want)
		}
		if got := s.Unmatched(f.Tools); !slices.Equal(got, f.Unmatched) {
			t.Errorf("%s: unmatched %q, want %q", f.ID, got, f.Unmatched)
		}
	}
}

func TestServerNames(t *testing.T) {
	for _, n := range readVectors(t).ServerNames {
		text := fmt.Sprintf("mcpServers: {%q: {command: x}}", n.Name)
		_, err := load(t, text, nil)
		if (err == nil) != n.Valid {
			t.Errorf("%s: name %q: error %v, want valid: %v", n.ID, n.Name, err, n.Valid)
		}
		if err != nil && !strings.Contains(err.Error(), "no legal server name") {
			t.Errorf("%s: %v", n.ID, err)
		}
	}
}
