package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// A listing is the flags of list.
type listing struct {
	source
	schema, tokens, json bool
}

func (a *app) listCommand() *cobra.Command {
	var l listing
	cmd := &cobra.Command{
		Use: "list [SERVER[.TOOL]]", Short: "List servers, one server's tools, or one tool", Args: atMost(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.list(cmd.Context(), &l, args) },
	}
	l.flags(cmd)
	cmd.Flags().BoolVar(&l.schema, "schema", false, "show input schemas")
	cmd.Flags().BoolVar(&l.tokens, "tokens", false, "show what tools cost a model to read, in cl100k_base tokens")
	cmd.Flags().BoolVar(&l.json, "json", false, "print JSON")
	return cmd
}

func (a *app) list(ctx context.Context, l *listing, args []string) error {
	b, err := l.open(ctx, a)
	if err != nil {
		return err
	}
	defer b.Close()
	stop := a.progress("asking the servers")
	defer stop()
	count := l.tokens || l.json
	if len(args) == 0 {
		all, err := b.Servers(ctx, count)
		stop()
		if err != nil {
			return err
		}
		if l.json {
			return a.print(all)
		}
		return a.printServers(all.Servers, l.tokens)
	}
	d, err := describe(ctx, b, args[0], count)
	stop()
	if err != nil {
		return err
	}
	if l.json {
		return a.print(d)
	}
	return a.printTools(d, l)
}

// describe returns the server that an address names, with the one tool if it names one.
func describe(ctx context.Context, b backend, address string, count bool) (admin.Detail, error) {
	server, _, dotted := admin.Split(address)
	if !dotted {
		d, err := detail(ctx, b, server, count)
		if !unknownServer(err) {
			return d, err
		}
		// it may still be a public name; if not, the server's being unknown is the better news
		t, notPublic := b.Find(ctx, address)
		if notPublic != nil {
			return admin.Detail{}, err
		}
		return one(ctx, b, t, count)
	}
	t, err := b.Find(ctx, address)
	if err != nil {
		return admin.Detail{}, err
	}
	return one(ctx, b, t, count)
}

// detail returns a server with its tools. That nothing is known of a server because it
// cannot be asked is an error, whoever asked it.
func detail(ctx context.Context, b backend, server string, count bool) (admin.Detail, error) {
	d, err := b.Detail(ctx, server, count)
	if err != nil || len(d.Tools) > 0 {
		return d, err
	}
	switch upstream.State(d.Status) {
	case upstream.Failed:
		return admin.Detail{}, &admin.Error{Kind: admin.Unreachable, Server: d.Name, Message: d.Error}
	case upstream.NeedsLogin:
		return admin.Detail{}, &admin.Error{Kind: admin.Auth, Server: d.Name, Message: d.Error}
	}
	return d, nil
}

func one(ctx context.Context, b backend, t target, count bool) (admin.Detail, error) {
	d, err := detail(ctx, b, t.server, count)
	if err != nil {
		return admin.Detail{}, err
	}
	for _, tool := range d.Tools {
		if tool.Name == t.tool && tool.Enabled {
			d.Tools = []admin.Tool{tool}
			return d, nil
		}
	}
	return admin.Detail{}, &admin.Error{Kind: admin.Unknown, Server: t.server, Tool: t.tool, Message: fmt.Sprintf("server %q has no tool %q", t.server, t.tool)}
}

// unknownServer reports whether an error says that there is no such server.
func unknownServer(err error) bool {
	var e *admin.Error
	return errors.As(err, &e) && e.Kind == admin.Unknown && e.Tool == ""
}

// printServers writes a table, and under it what went wrong.
func (a *app) printServers(servers []admin.Server, tokens bool) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row(w, "SERVER", "STATUS", "TOOLS", when(tokens, "TOKENS"), "TRANSPORT", "PROTOCOL", "DESCRIPTION")
	for _, s := range servers {
		row(w, s.Name, s.Status, fmt.Sprint(s.Tools), when(tokens, fmt.Sprint(s.Tokens)), s.Transport, dash(s.ProtocolVersion), dash(s.Description))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	notes := false
	for _, s := range servers {
		lines := remarks(s)
		if len(lines) > 0 && !notes {
			notes = true
			fmt.Fprintln(a.out)
		}
		for _, line := range lines {
			fmt.Fprintln(a.out, clean(line))
		}
	}
	return nil
}

// remarks are the error and the warnings of a server, a line each.
func remarks(s admin.Server) []string {
	var lines []string
	if s.Error != "" {
		text := strings.TrimPrefix(s.Error, s.Name+": ")
		if !s.NextTry.IsZero() {
			text += fmt.Sprintf(" (next try %s)", s.NextTry.Local().Format("15:04:05"))
		}
		lines = append(lines, s.Name+": error: "+text)
	}
	for _, w := range s.Warnings {
		at := s.Name
		if w.Tool != "" {
			at += "." + w.Tool
		}
		lines = append(lines, at+": warning: "+w.Message)
	}
	return lines
}

// printTools writes a server's tools: a line each, or a block each with --schema.
func (a *app) printTools(d admin.Detail, l *listing) error {
	head := fmt.Sprintf("%s: %s, %s", d.Name, d.Status, count(d.Server.Tools, "tool"))
	if l.tokens {
		head += fmt.Sprintf(", %s", count(d.Tokens, "token"))
	}
	if d.Description != "" {
		head += " (" + d.Description + ")"
	}
	fmt.Fprintln(a.out, clean(head))
	for _, line := range remarks(d.Server) {
		fmt.Fprintln(a.out, clean(line))
	}
	if len(d.Tools) == 0 {
		return nil
	}
	fmt.Fprintln(a.out)
	if l.schema {
		return a.printSchemas(d.Tools, l.tokens)
	}
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row(w, "TOOL", "PUBLIC NAME", when(l.tokens, "TOKENS"), "DESCRIPTION")
	for _, t := range d.Tools {
		row(w, t.Name, public(t), when(l.tokens, fmt.Sprint(t.Tokens)), summary(t.Description))
	}
	return w.Flush()
}

func (a *app) printSchemas(tools []admin.Tool, tokens bool) error {
	for i, t := range tools {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		head := fmt.Sprintf("%s: %s", t.Name, public(t))
		if tokens {
			head += ", " + count(t.Tokens, "token")
		}
		fmt.Fprintln(a.out, clean(head))
		for line := range strings.Lines(strings.TrimSpace(t.Description)) {
			fmt.Fprintln(a.out, "  "+clean(strings.TrimRight(line, "\r\n")))
		}
		for line := range strings.Lines(string(jsonrpc.Pretty(nil, t.InputSchema))) {
			fmt.Fprintln(a.out, "  "+clean(strings.TrimRight(line, "\n")))
		}
	}
	return nil
}

func public(t admin.Tool) string {
	if !t.Enabled {
		return "(filtered)"
	}
	return t.PublicName
}
