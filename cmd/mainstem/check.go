package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/proxy/admin"
)

func (a *app) checkCommand() *cobra.Command {
	var s source
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check [SERVER…]", Short: "Connect to servers and list their tools anew",
		RunE: func(cmd *cobra.Command, args []string) error { return a.check(cmd.Context(), &s, args, asJSON) },
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) check(ctx context.Context, s *source, servers []string, asJSON bool) error {
	b, err := s.open(ctx, a)
	if err != nil {
		return err
	}
	defer b.Close()
	stop := a.progress("connecting")
	all, err := b.Check(ctx, servers)
	stop()
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if asJSON {
		err = a.print(all)
	} else {
		err = a.printChecks(all.Checks)
	}
	if err != nil {
		return err
	}
	return verdict(all.Checks)
}

// verdict is the exit code of several checks: whoever must wait for a server comes
// before whoever must sign in.
func verdict(checks []admin.Check) error {
	code := exitFine
	for _, c := range checks {
		switch {
		case c.OK:
		case c.ErrorKind != admin.Auth:
			return exit(exitUnreachable)
		default:
			code = exitAuth
		}
	}
	if code != exitFine {
		return exit(code)
	}
	return nil
}

func (a *app) printChecks(checks []admin.Check) error {
	var out bytes.Buffer
	for _, c := range checks {
		if !c.OK {
			fmt.Fprintln(&out, clean(fmt.Sprintf("%s: failed after %d ms: %s", c.Server, c.DurationMS, strings.TrimPrefix(c.Error, c.Server+": "))))
			continue
		}
		fmt.Fprintln(&out, clean(fmt.Sprintf("%s: ok, protocol %s, %s (%d ms)", c.Server, c.ProtocolVersion, count(c.ToolCount, "tool"), c.DurationMS)))
		for _, name := range c.ToolNames {
			fmt.Fprintln(&out, "  "+clean(name))
		}
	}
	_, err := a.out.Write(out.Bytes())
	return err
}
