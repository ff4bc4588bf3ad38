package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// A local backend connects to the servers of a configuration itself, to no more of
// them than the question needs.
type local struct {
	parts *parts
	admin *admin.Admin
	errs  io.Writer
}

// listTimeout is how long connecting and listing may take, if nobody said otherwise.
const listTimeout = 30 * time.Second

func openLocal(ctx context.Context, a *app, paths []string, timeout time.Duration) (*local, error) {
	cfg, err := a.load(paths)
	if err != nil {
		return nil, err
	}
	o := wiring{listTimeout: listTimeout}
	if timeout > 0 {
		o.listTimeout = timeout
		cfg.Limits.MaxCallDuration = timeout
		for i, server := range cfg.Servers {
			hurried := *server
			hurried.Timeout = timeout
			cfg.Servers[i] = &hurried
		}
	}
	// What goes wrong is the command's own to say. The log is for who wants more.
	log := a.logger(cfg.Log)
	if log.GetLevel() >= zerolog.InfoLevel {
		log = log.Level(zerolog.ErrorLevel)
	}
	p, err := wire(ctx, cfg, log, o)
	if err != nil {
		return nil, err
	}
	return &local{parts: p, admin: p.admin, errs: a.errs}, nil
}

func (l *local) Close() { l.parts.set.Close() }

func (l *local) Servers(ctx context.Context, count bool) (admin.Servers, error) {
	l.admin.Refresh(ctx, true, l.admin.Enabled()...) // what failed stands in the status
	if err := ctx.Err(); err != nil {
		return admin.Servers{}, err
	}
	return l.admin.Servers(ctx, count)
}

func (l *local) Detail(ctx context.Context, server string, count bool) (admin.Detail, error) {
	name, err := l.admin.Name(server)
	if err != nil {
		return admin.Detail{}, err
	}
	d, err := l.admin.Detail(ctx, name, false)
	if err == nil && d.Status != string(upstream.Disabled) {
		err = l.admin.Refresh(ctx, true, name)[0]
	}
	if err != nil {
		return admin.Detail{}, err
	}
	return l.admin.Detail(ctx, name, count)
}

// Find knows a tool from the kept list if that is fresh, and else asks its server.
func (l *local) Find(ctx context.Context, address string) (target, error) {
	server, tool, dotted := admin.Split(address)
	name, unknown := l.admin.Name(server)
	if !dotted && unknown == nil {
		return target{}, usage("%q is a server: name a tool of it, SERVER.TOOL", address)
	}
	if dotted && unknown == nil {
		ref, err := l.find(ctx, name, tool)
		if err != nil {
			return target{}, err
		}
		return l.target(ctx, ref)
	}
	ref, ok := l.admin.Public(address)
	if !ok && dotted && l.parts.cfg.Naming.Charset != naming.MCP { // no public name has a dot
		return target{}, unknown
	}
	if !ok {
		missing := l.admin.Refresh(ctx, false, l.admin.Enabled()...)
		if ref, ok = l.admin.Public(address); !ok {
			return target{}, noSuch(address, dotted, unknown, errors.Join(missing...))
		}
	}
	return l.target(ctx, ref)
}

// noSuch is the error for an address that is neither SERVER.TOOL nor a public name.
func noSuch(address string, dotted bool, unknown, missing error) error {
	if dotted {
		return unknown
	}
	text := fmt.Sprintf("unknown tool %q", address)
	if missing != nil {
		text += "; not all servers could be asked: " + strings.ReplaceAll(missing.Error(), "\n", "; ")
	}
	return &admin.Error{Kind: admin.Unknown, Tool: address, Message: text}
}

// find looks a tool up in the kept list, and in a new one if it is not there: it may be
// newer than the list.
func (l *local) find(ctx context.Context, server, tool string) (naming.Ref, error) {
	if !slices.Contains(l.admin.Enabled(), server) {
		return l.admin.Resolve(ctx, server, tool) // that says so
	}
	kept := l.parts.listed(server)
	if err := l.admin.Refresh(ctx, false, server)[0]; err != nil {
		return naming.Ref{}, err
	}
	ref, err := l.admin.Resolve(ctx, server, tool)
	if err == nil || kept != l.parts.listed(server) {
		return ref, err
	}
	if err := l.admin.Refresh(ctx, true, server)[0]; err != nil {
		return naming.Ref{}, err
	}
	return l.admin.Resolve(ctx, server, tool)
}

func (l *local) target(ctx context.Context, ref naming.Ref) (target, error) {
	d, err := l.admin.Detail(ctx, ref.Server, false)
	if err != nil {
		return target{}, err
	}
	t := target{server: ref.Server, tool: ref.Raw}
	for _, tool := range d.Tools {
		if tool.Name == ref.Raw {
			t.schema = tool.InputSchema
		}
	}
	return t, nil
}

func (l *local) Call(ctx context.Context, t target, args json.RawMessage, s jsonrpc.Sink) (json.RawMessage, error) {
	return l.admin.Call(ctx, access.Caller{}, t.server, t.tool, args, s)
}

func (l *local) Check(ctx context.Context, servers []string) (admin.Checks, error) {
	return l.admin.Check(ctx, servers...)
}

// Catalog fails only if there is nothing to show and a server that would have had it.
func (l *local) Catalog(ctx context.Context, format string) ([]byte, error) {
	enabled := l.admin.Enabled()
	var first error
	for _, err := range l.admin.Refresh(ctx, false, enabled...) {
		if err == nil {
			continue
		}
		first = cmp.Or(first, err)
		fmt.Fprintln(l.errs, "mainstem: warning: "+clean(err.Error()))
	}
	if first != nil && l.parts.proxy.Fresh().Empty() {
		return nil, first
	}
	return l.admin.Catalog(ctx, format)
}
