// Package test holds what Mainstem promises as a whole: every test runs the binary, with fake servers behind it and raw clients in front.
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
