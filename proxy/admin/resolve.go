package admin

import (
	"context"
	"fmt"
	"strings"

	"github.com/mainstem-mcp/mainstem/catalog"
	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// Split parts SERVER.TOOL: the first dot ends the server's name. false: there is none.
func Split(address string) (server, tool string, ok bool) { return strings.Cut(address, ".") }

// Resolve finds the tool that a person means by a server and a tool: each is tried as
// configured or listed, then as the part of a tag. Only enabled tools are found. A list
// that is still on its way is waited for, as clients wait for the first one. An error
// is an *Error.
func (a *Admin) Resolve(ctx context.Context, server, tool string) (naming.Ref, error) {
	u, err := a.server(server)
	if err != nil {
		return naming.Ref{}, err
	}
	name := u.Server().Name
	if !u.Server().Enabled {
		return naming.Ref{}, &Error{Kind: Unknown, Server: name, Tool: tool, Message: fmt.Sprintf("server %q is disabled", name)}
	}
	if err := a.settle(ctx, u); err != nil {
		return naming.Ref{}, err
	}
	c := a.proxy.Fresh()
	if enabled(c, name, tool) {
		return naming.Ref{Server: name, Raw: tool}, nil
	}
	for _, tag := range naming.Tags(a.listed(c)) {
		if tag.Server == name && tag.ToolPart == tool {
			return tag.Ref, nil
		}
	}
	return naming.Ref{}, &Error{Kind: Unknown, Server: name, Tool: tool, Message: fmt.Sprintf("server %q has no tool %q", name, tool)}
}

// Public finds the tool behind a public name.
func (a *Admin) Public(name string) (naming.Ref, bool) {
	entry, ok := a.proxy.Fresh().All().Find(listing.Tools, name)
	return entry.Ref, ok
}

// settle sees to it that a server has a list, and asks for it no longer than clients
// wait for their first one. What a server lists is not known as long as it cannot be
// reached: that is the error then, not that the tool is unknown.
func (a *Admin) settle(ctx context.Context, u *upstream.Upstream) error {
	if u.Listing() != nil {
		return nil
	}
	wait, cancel := context.WithTimeout(ctx, a.cfg.Limits.FirstListWait)
	defer cancel()
	err := u.Refresh(wait)
	switch status := u.Status(); {
	case u.Listing() != nil:
		return nil
	case wait.Err() == nil:
		return failList(err)
	case ctx.Err() != nil:
		return fail(context.Cause(ctx))
	case status.State == upstream.NeedsLogin:
		return &Error{Kind: Auth, Server: u.Server().Name, Message: status.Error}
	case status.Error != "":
		return &Error{Kind: Unreachable, Server: u.Server().Name, Message: status.Error}
	}
	return &Error{Kind: Timeout, Server: u.Server().Name, Message: u.Server().Name + ": no list of its tools yet (limits.first_list_wait)"}
}

// Name returns the name of the server that a person means: by its name, or by the
// server part of its tags. An error is an *Error.
func (a *Admin) Name(server string) (string, error) {
	u, err := a.server(server)
	if err != nil {
		return "", err
	}
	return u.Server().Name, nil
}

func (a *Admin) server(name string) (*upstream.Upstream, error) {
	if u, ok := a.upstreams.Get(name); ok {
		return u, nil
	}
	for _, tag := range naming.Tags(a.parts()) {
		if tag.ServerPart == name {
			u, _ := a.upstreams.Get(tag.Server)
			return u, nil
		}
	}
	return nil, &Error{Kind: Unknown, Server: name, Message: fmt.Sprintf("unknown server %q%s", name, a.hint())}
}

// parts is every enabled server with one tool that stands for all: the server part of
// a tag does not depend on what a server lists, so it is known before.
func (a *Admin) parts() []naming.Server {
	var servers []naming.Server
	for _, u := range a.upstreams.All() {
		if u.Server().Enabled {
			servers = append(servers, naming.Server{Name: u.Server().Name, Tools: []naming.Tool{{Raw: "any"}}})
		}
	}
	return servers
}

// hint names the servers that there are, if they are few enough to be read.
func (a *Admin) hint() string {
	var names []string
	for _, u := range a.upstreams.All() {
		names = append(names, u.Server().Name)
	}
	if len(names) == 0 || len(names) > 20 {
		return ""
	}
	return " (configured: " + strings.Join(names, ", ") + ")"
}

func enabled(c *catalog.Catalog, server, raw string) bool {
	for _, t := range c.Tools(server) {
		if t.Ref.Raw == raw {
			return t.Enabled
		}
	}
	return false
}
