package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Set at release with -ldflags "-X main.version=… -X main.commit=…"; else what the Go
// tool wrote into the binary counts.
var version, commit string

// build returns the version and the commit of this binary.
func build() (v, c string) {
	v, c = version, commit
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	if v == "" {
		v = info.Main.Version
	}
	if v == "" || v == "(devel)" {
		v = "devel"
	}
	dirty := ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && c == "":
			c = s.Value
		case s.Key == "vcs.modified" && s.Value == "true" && commit == "":
			dirty = "-dirty"
		}
	}
	if c == "" {
		return v, "unknown"
	}
	return v, c + dirty
}

func versionText() string {
	v, c := build()
	return fmt.Sprintf("mainstem %s (commit %s, %s)", v, c, runtime.Version())
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit and Go version", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.out, versionText())
			return err
		},
	}
}
