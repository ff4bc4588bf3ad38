package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/proxy/admin"
)

func (a *app) catalogCommand() *cobra.Command {
	var s source
	var format string
	cmd := &cobra.Command{
		Use: "catalog", Short: "Print the catalog as text for a system prompt", Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.catalog(cmd.Context(), &s, format) },
	}
	s.flags(cmd)
	cmd.Flags().StringVar(&format, "format", admin.Markdown, fmt.Sprintf("`FORMAT`: %s, %s or %s", admin.Markdown, admin.XML, admin.JSON))
	return cmd
}

func (a *app) catalog(ctx context.Context, s *source, format string) error {
	switch format {
	case admin.Markdown, admin.XML, admin.JSON:
	default:
		return usage("--format: unknown format %q (want %s, %s or %s)", format, admin.Markdown, admin.XML, admin.JSON)
	}
	b, err := s.open(ctx, a)
	if err != nil {
		return err
	}
	defer b.Close()
	stop := a.progress("asking the servers")
	text, err := b.Catalog(ctx, format)
	stop()
	if err != nil {
		return err
	}
	_, err = a.out.Write(text)
	return err
}
