package upstream

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// What each answer to the probe means. Whole connections, pins and processes that end
// are in upstream_test.go.
func TestJudgeVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/negotiation.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Negotiation []struct {
			ID, Title string
			Version   string `json:"protocol_version"`
			Reply     *struct {
				Status        int
				Body          *string
				Result, Error json.RawMessage
				Timeout       bool
				Exit          int
			}
			Expected string
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	for _, v := range file.Negotiation {
		if v.Reply == nil { // not probed at all
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			reply := jsonrpc.Reply{Result: v.Reply.Result, Error: v.Reply.Error}
			var err error
			switch {
			case v.Reply.Status == 401:
				err = &transport.LoginError{Status: 401}
			case v.Reply.Body != nil:
				err = &transport.StatusError{Status: v.Reply.Status, Excerpt: *v.Reply.Body}
			case v.Reply.Timeout:
				err = errTimeout
			case v.Reply.Exit != 0:
				err = errDiedOfProbe
			}
			got, err := judge(reply, err)
			if want := v.Expected; want != outcome(got, err, v.Version) {
				t.Errorf("%s: %+v, %v: %q, want %q", v.Title, got, err, outcome(got, err, v.Version), want)
			}
		})
	}
}

func outcome(v verdict, err error, pin string) string {
	switch {
	case isLogin(err):
		return "authorize"
	case err != nil, pin == "2026-07-28" && !v.modern:
		return "fail"
	case v.modern:
		return "use " + v.version
	}
	return "initialize"
}

func FuzzJudge(f *testing.F) {
	f.Add([]byte(`{"supportedVersions":["2026-07-28"]}`), false)
	f.Add([]byte(`{"code":-32022,"data":{"supported":["2025-11-25"]}}`), true)
	f.Fuzz(func(t *testing.T, raw []byte, failed bool) {
		if jsonrpc.Check(raw) != nil {
			return
		}
		reply := jsonrpc.Reply{Result: raw}
		if failed {
			reply = jsonrpc.Reply{Error: raw}
		}
		if v, err := judge(reply, nil); err == nil && v.version == "" {
			t.Fatalf("%s: no version to go on with", raw)
		}
	})
}
