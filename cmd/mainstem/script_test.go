package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"mainstem": main})
}

var update = flag.Bool("update", false, "rewrite what is golden in the scripts; read the difference")

// TestScripts runs the command as its users do.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUp,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code":  exitCodeIs,
			"await": await,
			"http":  request,
			"mask":  mask,
			"term":  terminate,
		},
	})
}

// setUp gives a script a free port, and a server that wants a credential.
func setUp(env *testscript.Env) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	env.Defer(locked.Close)
	env.Setenv("ADDR", l.Addr().String())
	env.Setenv("LOCKED", locked.URL)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("MAINSTEM_CONFIG", "")
	env.Setenv("GORACE", "atexit_sleep_ms=0") // else each command under the race detector takes a second more
	return l.Close()
}

// exitCodeIs is `code N command [argument…]`.
func exitCodeIs(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N command [argument…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var ended *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &ended) {
		got = ended.ExitCode()
	} else if err != nil {
		ts.Fatalf("%s: %v", args[1], err)
	}
	if got != want {
		ts.Fatalf("%s: exit code %d, want %d\n%s%s", strings.Join(args[1:], " "), got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

// await is `await URL`: until it answers 200.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if res, err := http.Get(args[0]); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
	}
	ts.Fatalf("%s does not answer", args[0])
}

// request is `http METHOD URL [BODY [Header: value…]]`; it prints status, headers that
// matter, and body.
func request(ts *testscript.TestScript, _ bool, args []string) {
	body := ""
	if len(args) > 2 {
		body = args[2]
	}
	r, err := http.NewRequest(args[0], args[1], strings.NewReader(body))
	ts.Check(err)
	for _, field := range args[min(3, len(args)):] {
		name, value, _ := strings.Cut(field, ": ")
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	ts.Check(err)
	out := ts.Stdout()
	fmt.Fprintln(out, res.StatusCode)
	for _, name := range []string{"Allow", "Content-Type"} {
		if value := res.Header.Get(name); value != "" {
			fmt.Fprintf(out, "%s: %s\n", name, value)
		}
	}
	fmt.Fprintf(out, "\n%s", text)
}

// terminate is `term`: SIGTERM to what runs in the background.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

var varying = regexp.MustCompile(`("(?:refreshed_at|next_try|duration_ms|version)": )("[^"]*"|\d+)`)

var searched = regexp.MustCompile(`PATH searched: [^)]*`)

// mask is `mask stdout FILE`: writes a file in which what differs from run to run is *.
func mask(ts *testscript.TestScript, _ bool, args []string) {
	text := varying.ReplaceAllString(ts.ReadFile(args[0]), `$1"*"`)
	text = searched.ReplaceAllString(text, "PATH searched: *")
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o600))
}
