package transport_test

import (
	"bytes"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// A server that repeats what it was given must not get it into the log.
func TestSecretsOfAChildAreNotLogged_C197(t *testing.T) {
	var out watchedLog
	s := &config.Server{
		Name: "s", Command: "/bin/sh", HasArgs: true, MaxResponseBytes: 1 << 20,
		Args: []string{"-c", `echo "$API_TOKEN $MODE $*" >&2; echo "noise $API_TOKEN"; exec cat >/dev/null`, "sh", "--api-key=4rg-s3cret", "--password", "0ther-s3cret", "--dir", "/srv/docs"},
		Env:  []config.Var{{Name: "API_TOKEN", Value: config.NewSecret("env-s3cret")}, {Name: "MODE", Value: config.NewSecret("production")}},
	}
	conn, err := transport.Start(t.Context(), s, transport.Options{Policy: dial.New(nil), Environ: os.Environ, Log: zerolog.New(&out)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out.wait(t, "/srv/docs", "noise")
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
	if log := out.String(); strings.Contains(log, "s3cret") || !strings.Contains(log, "production") {
		t.Errorf("logged %s", log)
	}
}

// A watchedLog is one that can be waited on.
type watchedLog struct {
	mu      sync.Mutex
	buf     bytes.Buffer
	changed chan struct{}
}

func (b *watchedLog) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
	return b.buf.Write(p)
}

func (b *watchedLog) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// wait returns when all of the texts have been logged.
func (b *watchedLog) wait(t *testing.T, texts ...string) {
	t.Helper()
	for {
		b.mu.Lock()
		log := b.buf.String()
		changed := make(chan struct{})
		b.changed = changed
		b.mu.Unlock()
		missing := false
		for _, text := range texts {
			missing = missing || !strings.Contains(log, text)
		}
		if !missing {
			return
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("never logged all of %q: %s", texts, log)
		}
	}
}
