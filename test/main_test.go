// Package test holds what Mainstem promises as a whole: every test runs the binary, with fake servers behind it and raw clients in front.
//
// The binary is built once, with the race detector if the tests have it; $MAINSTEM names one that is ready. A test whose name begins
// with C and a number is about a fault that users of such proxies reported, M and G are limits and negotiation in testdata/behaviour.json.
// With -short those are left out that wait for half a minute and more.
package test

import (
	"flag"
	"os"
	"testing"

	"github.com/mainstem-mcp/mainstem/test/fake"
	"github.com/mainstem-mcp/mainstem/test/run"
)

func TestMain(m *testing.M) {
	fake.Main()
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("16") // most of the time the tests wait
	}
	code := m.Run()
	run.Clean()
	os.Exit(code)
}
