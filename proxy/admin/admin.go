// Package admin knows what a person can ask of the servers and their tools, and the
// JSON shapes of the answers, which the API and --json share.
package admin

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/catalog"
	"github.com/mainstem-mcp/mainstem/catalog/tokencost"
	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/naming"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// countedTools is how many token costs are remembered.
const countedTools = 20_000

// parallel bounds how many servers are connected to at a time.
const parallel = 64

// An Admin answers questions. Its methods may be called from any goroutine.
type Admin struct {
	cfg       *config.Config
	proxy     *proxy.Proxy
	upstreams *upstream.Set
	tokens    *tokencost.Counter
}

// New returns an Admin over what is running, or over parts that nobody runs: then
// Check is what connects.
func New(cfg *config.Config, p *proxy.Proxy, s *upstream.Set) *Admin {
	return &Admin{cfg: cfg, proxy: p, upstreams: s, tokens: tokencost.New(countedTools)}
}

// Servers returns all servers. Without count their token costs are left at 0.
func (a *Admin) Servers(ctx context.Context, count bool) (Servers, error) {
	out := Servers{Servers: []Server{}}
	c := a.proxy.Fresh()
	for _, u := range a.upstreams.All() {
		d, err := a.detail(ctx, c, u, count)
		if err != nil {
			return Servers{}, err
		}
		out.Servers = append(out.Servers, d.Server)
	}
	return out, nil
}

// Detail returns one server with its tools. name may also be the server part of a tag.
func (a *Admin) Detail(ctx context.Context, name string, count bool) (Detail, error) {
	u, err := a.server(name)
	if err != nil {
		return Detail{}, err
	}
	return a.detail(ctx, a.proxy.Fresh(), u, count)
}

func (a *Admin) detail(ctx context.Context, c *catalog.Catalog, u *upstream.Upstream, count bool) (Detail, error) {
	server, status := u.Server(), u.Status()
	d := Detail{Tools: []Tool{}, Server: Server{
		Name: server.Name, Description: server.Description, Status: string(status.State), Error: status.Error,
		Transport: string(server.Transport), Era: status.Era.String(), ProtocolVersion: status.Version,
		RefreshedAt: shown(status.RefreshedAt), NextTry: shown(status.NextTry), Warnings: []Warning{},
	}}
	if server.Transport == config.Auto {
		d.Transport = string(cmp.Or(status.Transport, config.StreamableHTTP))
	}
	for _, w := range c.Warnings() {
		if w.Server == server.Name {
			d.Warnings = append(d.Warnings, Warning{w.Tool, w.Message})
		}
	}
	for _, t := range c.Tools(server.Name) {
		tool := Tool{
			Name: t.Ref.Raw, PublicName: t.Public, Title: t.Title, Description: t.Description, Enabled: t.Enabled,
			InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, Annotations: t.Annotations,
		}
		if t.Enabled {
			d.Server.Tools++
			if count {
				var err error
				if tool.Tokens, err = a.tokens.Count(ctx, t.Public, t.Description, t.InputSchema); err != nil {
					return Detail{}, fail(err)
				}
				d.Tokens += tool.Tokens
			}
		}
		d.Tools = append(d.Tools, tool)
	}
	slices.SortStableFunc(d.Tools, func(a, b Tool) int { return strings.Compare(a.Name, b.Name) })
	return d, nil
}

// shown is a time as people want to see it.
func shown(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Arguments checks a text that is to hold the arguments of a tool: one object; nothing
// stands for an empty one. An error is an *Error.
func Arguments(text []byte) (json.RawMessage, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return json.RawMessage("{}"), nil
	}
	if err := jsonrpc.Check(text); err != nil {
		return nil, &Error{Kind: Usage, Message: "arguments: " + err.Error()}
	}
	if !jsonrpc.IsObject(text) {
		return nil, &Error{Kind: Usage, Message: "arguments: the arguments of a tool are a JSON object"}
	}
	return text, nil
}

// Call calls one tool and returns its result, which may say that the tool failed. s
// hears what the server says meanwhile; it may be nil. An error is an *Error.
func (a *Admin) Call(ctx context.Context, caller access.Caller, server, tool string, args json.RawMessage, s jsonrpc.Sink) (json.RawMessage, error) {
	ref, err := a.Resolve(ctx, server, tool)
	if err != nil {
		return nil, err
	}
	if s == nil {
		s = deaf{}
	}
	result, err := a.proxy.Call(ctx, caller, ref, args, s)
	if err != nil {
		return nil, failCall(ref, err)
	}
	return result, nil
}

// deaf is the Sink of a call whose caller hears nothing before the result.
type deaf struct{}

func (deaf) Notify(string, json.RawMessage) {}

func (deaf) Ask(_ context.Context, method string, _ json.RawMessage) (jsonrpc.Reply, error) {
	return upstream.Refusal(method), nil
}

// Check connects to servers and lists their tools anew; without names, to all that are
// enabled. An error is an *Error and means that nothing was tried.
func (a *Admin) Check(ctx context.Context, names ...string) (Checks, error) {
	var chosen []*upstream.Upstream
	for _, name := range names {
		u, err := a.server(name)
		if err != nil {
			return Checks{}, err
		}
		chosen = append(chosen, u)
	}
	if len(names) == 0 {
		for _, u := range a.upstreams.All() {
			if u.Server().Enabled {
				chosen = append(chosen, u)
			}
		}
	}
	out := Checks{Checks: make([]Check, len(chosen))}
	each(chosen, func(i int, u *upstream.Upstream) { out.Checks[i] = check(ctx, u) })
	a.proxy.Fresh() // who lists now gets what was found
	return out, nil
}

func check(ctx context.Context, u *upstream.Upstream) Check {
	started := time.Now()
	report, err := u.Check(ctx)
	c := Check{
		Server: u.Server().Name, OK: err == nil, ProtocolVersion: report.Version, ServerInfo: report.ServerInfo,
		ToolCount: len(report.Tools), ToolNames: report.Tools, DurationMS: time.Since(started).Milliseconds(),
	}
	if c.ToolNames == nil {
		c.ToolNames = []string{}
	}
	if err != nil {
		failure := failList(err)
		c.Error, c.ErrorKind = failure.Message, failure.Kind
	}
	return c
}

// Refresh brings the lists of these servers up to date, in parallel, where they are
// older than the servers' cache_ttl, or all of them if always. It returns one error for
// each server, in order; nil where there is none.
func (a *Admin) Refresh(ctx context.Context, always bool, names ...string) []error {
	errs := make([]error, len(names))
	var chosen []*upstream.Upstream
	for _, name := range names {
		u, _ := a.upstreams.Get(name)
		chosen = append(chosen, u)
	}
	each(chosen, func(i int, u *upstream.Upstream) {
		if u == nil || !always && fresh(u) {
			return
		}
		if err := u.Refresh(ctx); err != nil {
			errs[i] = failList(err)
		}
	})
	return errs
}

func fresh(u *upstream.Upstream) bool {
	l := u.Listing()
	return l != nil && time.Since(l.FetchedAt) < u.Server().CacheTTL
}

// each calls do for every server, so many at a time, and waits.
func each(servers []*upstream.Upstream, do func(int, *upstream.Upstream)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, parallel)
	for i, u := range servers {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			do(i, u)
		})
	}
	running.Wait()
}

// Enabled returns the names of the enabled servers.
func (a *Admin) Enabled() []string {
	var names []string
	for _, u := range a.upstreams.All() {
		if u.Server().Enabled {
			names = append(names, u.Server().Name)
		}
	}
	return names
}

// listed is every enabled server with its enabled tools, to give them tags.
func (a *Admin) listed(c *catalog.Catalog) []naming.Server {
	var servers []naming.Server
	for _, u := range a.upstreams.All() {
		server := u.Server()
		if !server.Enabled {
			continue
		}
		s := naming.Server{Name: server.Name}
		for _, t := range c.Tools(server.Name) {
			if !t.Enabled {
				continue
			}
			tool := naming.Tool{Raw: t.Ref.Raw}
			if o := server.Tools[t.Ref.Raw]; o.Name != nil {
				tool.Name = *o.Name
			}
			s.Tools = append(s.Tools, tool)
		}
		servers = append(servers, s)
	}
	return servers
}
