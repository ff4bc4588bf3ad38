package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/cmd/mainstem/demo"
)

func (a *app) demoCommand() *cobra.Command {
	names := strings.Join(demo.Names(), " or ")
	return &cobra.Command{
		Use: "demo NAME", Short: fmt.Sprintf("Be an MCP server on stdin and stdout: %s", names),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("demo: which one? (want %s)", names)
			}
			for _, name := range demo.Names() {
				if args[0] == name {
					return nil
				}
			}
			return usage("demo: unknown server %q (want %s)", args[0], names)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			v, _ := build()
			return demo.Run(cmd.Context(), args[0], v, a.in, a.out, a.errs)
		},
	}
}
