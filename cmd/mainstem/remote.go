package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
	"github.com/mainstem-mcp/mainstem/upstream"
)

// A remote backend asks a running Mainstem over its REST routes.
type remote struct {
	// set by newRemote, never changed
	base    *url.URL
	key     string
	timeout time.Duration // of one request; 0: listTimeout, but calls and checks have limits over there
	client  *http.Client
}

// maxAnswer bounds an answer: a list or a result, with room around it.
const maxAnswer = 256 << 20

func newRemote(base *url.URL, key string, timeout time.Duration) *remote {
	return &remote{base: base, key: key, timeout: timeout, client: &http.Client{
		Transport: &http.Transport{Proxy: http.ProxyFromEnvironment},
		// a key must not follow a redirect to somebody else
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (r *remote) Close() { r.client.CloseIdleConnections() }

func (r *remote) Servers(ctx context.Context, _ bool) (out admin.Servers, err error) {
	return out, r.get(ctx, &out, "servers")
}

func (r *remote) Detail(ctx context.Context, server string, _ bool) (out admin.Detail, err error) {
	if err := r.get(ctx, &out.Server, "servers", server); err != nil {
		return out, err
	}
	var tools admin.Tools
	err = r.get(ctx, &tools, "servers", server, "tools")
	out.Tools = tools.Tools
	return out, err
}

// Find leaves it to the other side to know the parts of tags: a tool that is not listed
// by its raw name is asked for all the same.
func (r *remote) Find(ctx context.Context, address string) (target, error) {
	server, tool, dotted := admin.Split(address)
	d, err := r.Detail(ctx, server, false)
	switch {
	case err == nil && !dotted:
		return target{}, usage("%q is a server: name a tool of it, SERVER.TOOL", address)
	case err == nil:
		t := target{server: d.Name, tool: tool}
		for _, listed := range d.Tools {
			if listed.Name == tool {
				t.schema = listed.InputSchema
			}
		}
		return t, nil
	case !unknownServer(err):
		return target{}, err
	}
	var all admin.Catalog
	if err := r.get(ctx, &all, "catalog?format="+admin.JSON); err != nil {
		return target{}, err
	}
	for _, t := range all.Tools {
		if t.Name == address {
			return target{server: t.Server, tool: t.RawName, schema: t.InputSchema}, nil
		}
	}
	return target{}, noSuch(address, dotted, err, nil)
}

func (r *remote) Call(ctx context.Context, t target, args json.RawMessage, _ jsonrpc.Sink) (json.RawMessage, error) {
	result, err := r.ask(ctx, http.MethodPost, args, "servers", t.server, "tools", t.tool, "call")
	if err != nil {
		return nil, err
	}
	if !jsonrpc.IsObject(result) {
		return nil, r.stranger("its answer is no result")
	}
	return result, nil
}

func (r *remote) Check(ctx context.Context, servers []string) (admin.Checks, error) {
	if len(servers) == 0 {
		all, err := r.Servers(ctx, false)
		if err != nil {
			return admin.Checks{}, err
		}
		for _, s := range all.Servers {
			if s.Status != string(upstream.Disabled) {
				servers = append(servers, s.Name)
			}
		}
	}
	checks, errs := make([]admin.Check, len(servers)), make([]error, len(servers))
	inParallel(len(servers), func(i int) {
		body, err := r.ask(ctx, http.MethodPost, nil, "servers", servers[i], "check")
		if err == nil {
			err = r.decode(body, &checks[i])
		}
		errs[i] = err
	})
	for _, err := range errs {
		if err != nil {
			return admin.Checks{}, err
		}
	}
	return admin.Checks{Checks: checks}, nil
}

func (r *remote) Catalog(ctx context.Context, format string) ([]byte, error) {
	if format == admin.JSON {
		return r.ask(ctx, http.MethodGet, nil, "catalog?format="+format)
	}
	return r.fetch(ctx, http.MethodGet, nil, "catalog?format="+format)
}

func (r *remote) get(ctx context.Context, into any, path ...string) error {
	body, err := r.ask(ctx, http.MethodGet, nil, path...)
	if err != nil {
		return err
	}
	return r.decode(body, into)
}

// ask is fetch where JSON is to come.
func (r *remote) ask(ctx context.Context, method string, body []byte, path ...string) (json.RawMessage, error) {
	answer, err := r.fetch(ctx, method, body, path...)
	if err != nil {
		return nil, err
	}
	if err := jsonrpc.Check(answer); err != nil {
		return nil, r.stranger("its answer is no JSON: " + err.Error())
	}
	return answer, nil
}

func (r *remote) decode(body json.RawMessage, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return r.stranger("its answer is not what was asked for: " + err.Error())
	}
	return nil
}

// stranger is the error for somebody at the address who does not speak as we do.
func (r *remote) stranger(what string) error {
	return &admin.Error{Kind: admin.Other, Message: fmt.Sprintf("no Mainstem at %s: %s", r.base, what)}
}

// fetch sends one request. The parts of the path are escaped, but for a query in the
// first.
func (r *remote) fetch(ctx context.Context, method string, body []byte, path ...string) ([]byte, error) {
	timeout := r.timeout
	if timeout == 0 && method == http.MethodGet {
		timeout = listTimeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %v", timeout))
		defer cancel()
	}
	address := r.base.String() + "/api/v1/" + path[0]
	for _, part := range path[1:] {
		address += "/" + escape(part)
	}
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	v, _ := build()
	req.Header.Set("User-Agent", "Mainstem/"+v)
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	res, err := r.client.Do(req)
	if err != nil {
		return nil, r.unreachable(ctx, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, r.unreachable(ctx, err)
	case len(answer) > maxAnswer:
		return nil, r.stranger(fmt.Sprintf("its answer has more than %d bytes", maxAnswer))
	case res.StatusCode != http.StatusOK:
		return nil, r.refused(res.StatusCode, answer)
	case strings.HasPrefix(res.Header.Get("Content-Type"), "text/html"): // somebody else's page
		return nil, r.stranger("its answer is a web page")
	}
	return answer, nil
}

// escape makes one path segment of a text. Dots alone would be taken for a step.
func escape(part string) string {
	switch part {
	case ".":
		return "%2E"
	case "..":
		return "%2E%2E"
	}
	return url.PathEscape(part)
}

func (r *remote) unreachable(ctx context.Context, err error) error {
	kind, what := admin.Unreachable, err
	var outer *url.Error
	if errors.As(err, &outer) {
		what = outer.Err // the address stands in the message already
	}
	if errors.Is(err, context.DeadlineExceeded) {
		kind, what = admin.Timeout, context.Cause(ctx)
	}
	return &admin.Error{Kind: kind, Message: fmt.Sprintf("Mainstem at %s: %v", r.base, what), Cause: err}
}

// refused makes an error of an answer that is none of ours to print.
func (r *remote) refused(status int, body []byte) error {
	var problem admin.Failure
	if json.Unmarshal(body, &problem) == nil && problem.Error != nil && problem.Error.Kind != "" {
		return problem.Error
	}
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return &admin.Error{Kind: admin.Auth, Message: fmt.Sprintf("Mainstem at %s wants another client key (HTTP %d): give it with --key-env", r.base, status)}
	}
	return r.stranger(fmt.Sprintf("HTTP %d", status))
}

// atOnce bounds how many requests are under way at a time.
const atOnce = 16

// inParallel calls do for every index below n and waits.
func inParallel(n int, do func(int)) {
	var running sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			do(i)
		})
	}
	running.Wait()
}
