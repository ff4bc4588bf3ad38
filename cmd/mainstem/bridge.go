package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/singleflight"

	"github.com/mainstem-mcp/mainstem/catalog/schema"
	"github.com/mainstem-mcp/mainstem/config"
	"github.com/mainstem-mcp/mainstem/dial"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/proxy"
	"github.com/mainstem-mcp/mainstem/proxy/front/stdio"
	"github.com/mainstem-mcp/mainstem/proxy/session"
	"github.com/mainstem-mcp/mainstem/upstream"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// A bridge answers a client on stdio with what a running Mainstem says. It changes
// nothing on the way: ids, sessions and streams are the business of the transport.
type bridge struct {
	// set by bridge, never changed
	base  *url.URL
	http  *transport.HTTP
	log   zerolog.Logger
	again singleflight.Group // one new session at a time

	mu     sync.Mutex // guards what follows
	conn   *transport.HTTPConn
	users  *sync.WaitGroup            // calls on conn
	client *session.Session           // hears what belongs to no call; nil before initialize
	hello  json.RawMessage            // the params of initialize; nil before
	mirror map[string][]schema.Header // by public name: arguments that go into headers
}

const (
	maxBridged = 64 << 20         // bytes of one message: a list may be long
	helloTime  = 30 * time.Second // for initialize
)

func (a *app) bridge(ctx context.Context, base *url.URL, key string) error {
	log := a.logger(config.Log{Level: "warn", Format: "auto"})
	header := http.Header{}
	if key != "" {
		header.Set("Authorization", "Bearer "+key)
	}
	v, _ := build()
	b := &bridge{base: base, log: log, mirror: map[string][]schema.Header{}}
	b.http = transport.NewHTTP(transport.HTTPOptions{
		URL: base.String() + "/mcp", Header: header, MaxMessage: maxBridged, Policy: dial.New(nil), UserAgent: "Mainstem/" + v, Log: log,
	})
	b.conn, b.users = b.http.Open(b, true), new(sync.WaitGroup)
	table := session.NewTable(session.TableOptions{Log: log})
	front := stdio.New(b, table, stdio.Options{MaxRequestBytes: maxBridged})
	err := front.Run(ctx, a.in, a.out)
	table.Close()
	_ = b.current().Close() // there is nobody left to hear about it
	b.http.Close()
	return err
}

func (b *bridge) current() *transport.HTTPConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.conn
}

// Serve carries one message over and its answer back.
func (b *bridge) Serve(ctx context.Context, r proxy.Request, s proxy.Stream) {
	if r.Message.IsNotification() {
		if err := b.current().Notify(ctx, r.Message.Method, r.Message.Params); err != nil {
			b.log.Warn().Err(err).Str("method", r.Message.Method).Msg("notification not delivered")
		}
		return
	}
	reply, err := b.forward(ctx, r, s)
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		reply = jsonrpc.Reply{Error: protocol.ErrorObject(protocol.CodeInternal, b.explain(err), nil)}
	}
	defer reply.Release()
	if err := s.Reply(reply); err != nil {
		b.log.Debug().Err(err).Msg("answer not delivered")
	}
}

func (b *bridge) explain(err error) string {
	var login *transport.LoginError
	if errors.As(err, &login) {
		return fmt.Sprintf("Mainstem at %s wants another client key (HTTP %d): give it with --key-env", b.base, login.Status)
	}
	return fmt.Sprintf("Mainstem at %s: %v", b.base, err)
}

func (b *bridge) forward(ctx context.Context, r proxy.Request, s proxy.Stream) (jsonrpc.Reply, error) {
	m := r.Message
	switch m.Method {
	case protocol.Initialize:
		return b.initialize(ctx, r, s)
	case protocol.CallTool:
		return b.call(ctx, m.Params, s)
	case protocol.Listen:
		reply, err := b.ask(ctx, m.Method, m.Params, subscriber{s, m.ID})
		reply.Result = subscribed(reply.Result, m.ID)
		return reply, err
	}
	return b.ask(ctx, m.Method, m.Params, s)
}

// A subscriber hears the notifications of a subscription, which carry the id of the
// request that began it: over there that is the transport's, here the client's.
type subscriber struct {
	proxy.Stream
	id json.RawMessage
}

// Notify passes a notification on.
func (s subscriber) Notify(method string, params json.RawMessage) {
	s.Stream.Notify(method, subscribed(params, s.id))
}

// subscribed puts id in the place of the subscription's id.
func subscribed(object, id json.RawMessage) json.RawMessage {
	p := jsonrpc.NewParams(object)
	if p.Meta(protocol.MetaSubscription) == nil {
		return object
	}
	p.SetMeta(protocol.MetaSubscription, id)
	return p.Append(nil)
}

// initialize begins a session there, in the place of one that the client had before.
func (b *bridge) initialize(ctx context.Context, r proxy.Request, s proxy.Stream) (jsonrpc.Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, helloTime)
	defer cancel()
	conn := b.http.Open(b, true)
	reply, err := conn.Call(ctx, protocol.Initialize, jsonrpc.NewParams(r.Message.Params), s)
	if err != nil || reply.Result == nil {
		_ = conn.Close() // it never became a session
		return reply, err
	}
	version, _ := jsonrpc.Unquote(jsonrpc.Get(reply.Result, "protocolVersion"))
	r.Session.Negotiated(version, nil, nil)
	b.mu.Lock()
	before := b.conn
	b.conn, b.users = conn, new(sync.WaitGroup)
	b.client, b.hello = r.Session, bytes.Clone(r.Message.Params)
	b.mu.Unlock()
	_ = before.Close() // whatever it says, the session is not used any more
	return reply, nil
}

// ask sends one request, once more in a new session if the old one is gone: then it
// cannot have run.
func (b *bridge) ask(ctx context.Context, method string, params json.RawMessage, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	b.mu.Lock()
	conn, users := b.conn, b.users
	users.Add(1)
	b.mu.Unlock()
	defer users.Done()
	reply, err := conn.Call(ctx, method, jsonrpc.NewParams(params), s)
	var gone *transport.SessionGone
	if !errors.As(err, &gone) {
		return reply, err
	}
	if conn, err = b.renew(ctx, conn); err != nil {
		return jsonrpc.Reply{}, err
	}
	return conn.Call(ctx, method, jsonrpc.NewParams(params), s)
}

// renew makes a new session, which the client need not know of: Mainstem was restarted,
// or the old session was idle for too long.
func (b *bridge) renew(ctx context.Context, lost *transport.HTTPConn) (*transport.HTTPConn, error) {
	made, err, _ := b.again.Do("", func() (any, error) {
		b.mu.Lock()
		conn, hello := b.conn, b.hello
		b.mu.Unlock()
		if conn != lost || hello == nil { // somebody was faster
			return conn, nil
		}
		// those who wait for it may not all go when the first one does
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), helloTime)
		defer cancel()
		next := b.http.Open(b, true)
		reply, err := next.Call(ctx, protocol.Initialize, jsonrpc.NewParams(hello), nil)
		if err == nil && reply.Result == nil {
			err = fmt.Errorf("initialize: %s", reply.Error)
		}
		reply.Release()
		if err == nil {
			err = next.Notify(ctx, protocol.Initialized, nil)
		}
		if err != nil {
			_ = next.Close() // it never became a session
			return nil, err
		}
		b.mu.Lock()
		users := b.users
		b.conn, b.users = next, new(sync.WaitGroup)
		b.mu.Unlock()
		go func() { // other calls are still being told that the session is gone
			users.Wait()
			_ = lost.Close()
		}()
		return next, nil
	})
	if err != nil {
		return nil, err
	}
	return made.(*transport.HTTPConn), nil
}

// call is ask for tools/call. A client on stdio sends no headers, but over HTTP a tool
// may want arguments repeated in them (2026-07-28, custom headers): which ones is
// learned from the list when it is first missed. A request refused for that did not run.
func (b *bridge) call(ctx context.Context, params json.RawMessage, s jsonrpc.Sink) (jsonrpc.Reply, error) {
	reply, err := b.ask(b.withHeaders(ctx, params), protocol.CallTool, params, s)
	if err != nil || string(jsonrpc.Get(reply.Error, "code")) != strconv.Itoa(protocol.CodeHeaderMismatch) {
		return reply, err
	}
	if !b.learn(ctx, jsonrpc.Get(params, "_meta")) {
		return reply, nil
	}
	reply.Release()
	return b.ask(b.withHeaders(ctx, params), protocol.CallTool, params, s)
}

func (b *bridge) withHeaders(ctx context.Context, params json.RawMessage) context.Context {
	name, _ := jsonrpc.Unquote(jsonrpc.Get(params, "name"))
	b.mu.Lock()
	mirror := b.mirror[name]
	b.mu.Unlock()
	var headers []upstream.ParamHeader
	for _, h := range mirror {
		value := jsonrpc.Get(params, "arguments")
		for _, step := range h.Path {
			value = jsonrpc.Get(value, step)
		}
		if value == nil || jsonrpc.IsNull(value) || jsonrpc.IsObject(value) || jsonrpc.IsArray(value) {
			continue
		}
		text, quoted := jsonrpc.Unquote(value)
		if !quoted {
			text = string(value)
		}
		headers = append(headers, upstream.ParamHeader{Name: h.Name, Value: text})
	}
	if headers == nil {
		return ctx
	}
	return upstream.WithHeaders(ctx, headers)
}

// learn reads from the list which arguments go into headers.
func (b *bridge) learn(ctx context.Context, meta json.RawMessage) bool {
	params := append(append([]byte(`{"_meta":`), meta...), '}')
	reply, err := b.ask(ctx, protocol.ListTools, params, nil)
	if err != nil || reply.Result == nil {
		return false
	}
	defer reply.Release()
	mirror := map[string][]schema.Header{}
	for tool := range jsonrpc.Elements(jsonrpc.Get(reply.Result, "tools")) {
		name, _ := jsonrpc.Unquote(jsonrpc.Get(tool, "name"))
		if known, ok := schema.Definition(tool, schema.Options{Mode: schema.Passthrough}); ok && len(known.Shown) > 0 {
			mirror[name] = known.Shown
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mirror = mirror
	return true
}

// Notify passes on what belongs to no call.
func (b *bridge) Notify(method string, params json.RawMessage) {
	b.mu.Lock()
	client := b.client
	b.mu.Unlock()
	if client != nil {
		client.Notify(method, params)
	}
}

// Ask refuses what belongs to no call.
func (b *bridge) Ask(_ context.Context, method string, _ json.RawMessage) (jsonrpc.Reply, error) {
	return upstream.Refusal(method), nil
}
