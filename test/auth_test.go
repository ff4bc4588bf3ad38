package test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/mainstem-mcp/mainstem/test/client"
	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

func TestC119CredentialFailure(t *testing.T) {
	t.Parallel()
	locked := fake.HTTP(t, fake.Options{Intercept: func(w http.ResponseWriter, _ *http.Request, _ []byte) bool {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		w.WriteHeader(http.StatusUnauthorized)
		return true
	}})
	good := fake.HTTP(t, fake.Options{Tools: fake.Tools("a")})
	config := run.Of(run.HTTP("locked", locked, fields{"bearer_token_env_var": "TOKEN"}), run.HTTP("good", good))
	m := run.Start(t, config, "TOKEN=tok-revoked")
	c := legacy(t, m)
	if got := c.Names(); !slices.Equal(got, []string{"good__a"}) {
		t.Errorf("names = %v", got)
	}
	got := m.WaitStatus("locked", "needs_login")
	if !strings.Contains(got.Error, "401") && !strings.Contains(got.Error, "mainstem login locked") {
		t.Errorf("status = %+v", got)
	}
	traffic := len(locked.Seen())
	code, body := m.Post("/api/v1/servers/locked/tools/a/call", "{}")
	if code != http.StatusBadGateway || !strings.Contains(string(body), `"auth"`) {
		t.Errorf("REST: %d %s", code, body)
	}
	if n := len(locked.Seen()) - traffic; n > 3 {
		t.Errorf("%d requests for one call", n)
	}
	cmd := run.Prepare(t, config, []string{"TOKEN=tok-revoked"}, "call", "locked.a")
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(string(out), "mainstem login locked") {
		t.Errorf("mainstem call: exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestC119LostCredential has a server that listed its tools and then refuses the credential.
func TestC119LostCredential(t *testing.T) {
	t.Parallel()
	_, m := behind(t, fake.Options{Tools: fake.Tools("a"), Calls: map[string]fake.Handler{"a": func(c *fake.Call) {
		c.W.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		c.W.WriteHeader(http.StatusUnauthorized)
	}}})
	a := legacy(t, m).Tool("up__a", "{}")
	if a.Status != http.StatusOK {
		t.Errorf("status %d", a.Status)
	}
	failed(t, a.Message, "up", "mainstem login up")
	m.WaitStatus("up", "needs_login")
}

func TestC125ClientCredentialsStayHere(t *testing.T) {
	t.Parallel()
	s, m := behind(t, fake.Options{Tools: fake.Tools("a")})
	for _, version := range []string{client.Latest, client.Modern} {
		c := client.New(t, m.Endpoint(), version)
		c.Header = http.Header{"Authorization": {"Bearer secret-a"}, "Cookie": {"k=secret-b"}, "X-Api-Key": {"secret-c"}, "Proxy-Authorization": {"secret-d"}}
		if version == client.Latest {
			d := client.Dial(t, m.Endpoint(), version)
			c.Session = d.Session
		}
		if got := c.Tool("up__a", "{}").Text(); got != "{}" {
			t.Errorf("%s: got %q", version, got)
		}
	}
	for _, r := range s.Seen() {
		if all := fmt.Sprint(r.Header); strings.Contains(all, "secret-") {
			t.Errorf("%s with %s", r.Method, all)
		}
	}
}
