package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mainstem-mcp/mainstem/proxy/admin"
)

// An app is the command line: what it reads, and where it writes.
type app struct {
	in        io.Reader
	out, errs io.Writer
	env       func(string) (string, bool)
	lines     *batch // the log, on its way to errs
	json      bool   // every outcome is one JSON document on out; set by run
}

// Exit codes.
const (
	exitFine        = 0
	exitTool        = 1 // the tool failed, or there is none of that name
	exitUsage       = 2 // or configuration
	exitUnreachable = 3 // or timed out
	exitAuth        = 4
	exitInterrupted = 130 // as shells have it
)

// An exit is an outcome that a command has already written out.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	a.json = wantsJSON(args)
	root := a.command()
	root.SetArgs(args)
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	err := root.ExecuteContext(ctx)
	var done exit
	switch {
	case err == nil:
		return exitFine
	case errors.As(err, &done):
		return int(done)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		if a.json {
			_ = a.print(admin.Failure{Error: &admin.Error{Kind: admin.Other, Message: "interrupted"}})
		}
		return exitInterrupted
	}
	return a.fail(err)
}

// fail writes an error and returns its exit code.
func (a *app) fail(err error) int {
	var e *admin.Error
	if !errors.As(err, &e) {
		e = &admin.Error{Kind: admin.Other, Message: err.Error()}
	}
	if a.json {
		_ = a.print(admin.Failure{Error: e}) // the exit code says it, too
	} else {
		for line := range strings.Lines(strings.TrimRight(e.Message, "\n") + "\n") {
			fmt.Fprint(a.errs, "mainstem: "+line)
		}
	}
	return exitCode(e)
}

func exitCode(e *admin.Error) int {
	switch e.Kind {
	case admin.Usage, admin.Config:
		return exitUsage
	case admin.Unknown:
		if e.Tool == "" { // the server is
			return exitUsage
		}
	case admin.Unreachable, admin.Timeout:
		return exitUnreachable
	case admin.Auth:
		return exitAuth
	}
	return exitTool
}

func usage(format string, args ...any) error {
	return &admin.Error{Kind: admin.Usage, Message: fmt.Sprintf(format, args...)}
}

// print writes a shape as JSON.
func (a *app) print(shape any) error {
	_, err := a.out.Write(admin.Encode(shape))
	return err
}

// command builds the tree of commands.
func (a *app) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "mainstem",
		Short:         "One MCP endpoint in front of many MCP servers",
		Version:       versionText(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SuggestionsMinimumDistance = 2
	root.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return usage("which command? Run `mainstem --help`")
		}
		hint := "run `mainstem --help`"
		if near := root.SuggestionsFor(args[0]); len(near) > 0 {
			hint = "did you mean " + strings.Join(near, " or ") + "?"
		}
		return usage("unknown command %q (%s)", args[0], hint)
	}
	root.RunE = func(*cobra.Command, []string) error { return nil } // Args lets nothing through
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v (run `%s --help`)", err, cmd.CommandPath())
	})
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(a.serveCommand(), a.stdioCommand(), a.listCommand(), a.callCommand(), a.checkCommand(),
		a.validateCommand(), a.catalogCommand(), a.demoCommand(), a.versionCommand())
	return root
}

// atMost is cobra.MaximumNArgs with an error of ours.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("unexpected argument %q (usage: %s)", args[n], cmd.UseLine())
		}
		return nil
	}
}

// wantsJSON finds out whether the outcome must be a JSON document before the flags are
// parsed, because their being wrong is an outcome too.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	command := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
	if command < 0 {
		return false
	}
	flag, values := "", []string{}
	switch args[command] {
	case "call":
		flag, values = "--output", []string{"json", "raw"}
	case "catalog":
		flag, values = "--format", []string{"json"}
	case "list", "check":
		return wantsFlag(args, "--json")
	}
	wants := false
	for i, arg := range args {
		value, ok := strings.CutPrefix(arg, flag+"=")
		if arg == flag && i+1 < len(args) {
			value, ok = args[i+1], true
		}
		if ok && flag != "" {
			wants = slices.Contains(values, value)
		}
	}
	return wants
}

// wantsFlag finds out whether a flag without a value is set; the last one counts.
func wantsFlag(args []string, flag string) bool {
	wants := false
	for _, arg := range args {
		value, ok := strings.CutPrefix(arg, flag+"=")
		if arg == flag {
			value, ok = "true", true
		}
		if ok {
			wants, _ = strconv.ParseBool(value) // one that is wrong is reported as text
		}
	}
	return wants
}

// isTerminal reports whether a stream is one.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
