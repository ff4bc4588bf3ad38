package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
)

func (a *app) validateCommand() *cobra.Command {
	var paths []string
	cmd := &cobra.Command{
		Use: "validate", Short: "Load the configuration and print every problem with its line", Args: atMost(0),
		RunE: func(*cobra.Command, []string) error { return a.validate(paths) },
	}
	configFlag(cmd, &paths)
	return cmd
}

// validate prints problems on stdout: here they are the result.
func (a *app) validate(paths []string) error {
	cfg, err := a.load(paths)
	var problems config.Problems
	switch {
	case err == nil:
		problems = cfg.Warnings
	case errors.As(err, &problems):
	default:
		return err
	}
	for _, p := range problems {
		fmt.Fprintln(a.out, p)
	}
	if err != nil {
		return exit(exitUsage)
	}
	_, err = fmt.Fprintf(a.out, "configuration is valid: %s\n", count(len(cfg.Servers), "server"))
	return err
}

func configFlag(cmd *cobra.Command, paths *[]string) {
	cmd.Flags().StringArrayVar(paths, "config", nil, "configuration `FILE` or folder; may be given more than once")
}

// load reads the configuration. An error is an *admin.Error around config.Problems.
func (a *app) load(paths []string) (*config.Config, error) {
	found, err := config.Find(paths, a.env)
	if err == nil {
		var cfg *config.Config
		if cfg, err = config.Load(found, a.env); err == nil {
			return cfg, nil
		}
	}
	return nil, &admin.Error{Kind: admin.Config, Message: err.Error(), Cause: err}
}

// count is a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
