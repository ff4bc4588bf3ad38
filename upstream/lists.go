package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/mainstem-mcp/mainstem/catalog/listing"
	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/protocol"
	"github.com/mainstem-mcp/mainstem/upstream/transport"
)

// maxPages bounds how many pages of one list are read.
const maxPages = 1000

// fetch asks for every page of every list. Lists change nothing, so they are asked for
// once more if the connection turns out to be dead.
func (u *Upstream) fetch(ctx context.Context) (*listing.Listing, *link, error) {
	for again := true; ; again = false {
		l, err := u.house.connected(ctx)
		if err != nil {
			return nil, nil, err
		}
		fetched, err := u.fetchOn(ctx, l)
		if err == nil {
			u.house.release(l)
			return fetched, l, nil
		}
		dead := isClosed(l.conn.Done())
		_ = u.house.lostLink(l, err)
		u.house.release(l)
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		if !again || !dead && !sessionGone(err) {
			return nil, nil, err
		}
	}
}

func sessionGone(err error) bool {
	var gone *transport.SessionGone
	return errors.As(err, &gone)
}

func (u *Upstream) fetchOn(ctx context.Context, l *link) (*listing.Listing, error) {
	b := listing.Builder{Listing: listing.Listing{Version: l.version, ServerInfo: l.info}}
	if l.tools {
		if err := u.fetchList(ctx, l, &b); err != nil {
			return nil, err
		}
	}
	b.FetchedAt = time.Now()
	return b.Done(), nil
}

func (u *Upstream) fetchList(ctx context.Context, l *link, b *listing.Builder) error {
	seen := map[string]bool{}
	params := json.RawMessage("{}")
	for range maxPages {
		cursor, err := u.fetchPage(ctx, l, b, params)
		if err != nil {
			return err
		}
		if cursor == nil {
			return nil
		}
		if seen[string(cursor)] {
			b.Notes = append(b.Notes, "tools/list gave the same cursor twice; what came until then counts")
			return nil
		}
		seen[string(cursor)] = true
		params = append(append(json.RawMessage(`{"cursor":`), cursor...), '}')
	}
	b.Notes = append(b.Notes, fmt.Sprintf("tools/list has more than %d pages; what came until then counts", maxPages))
	return nil
}

func (u *Upstream) fetchPage(ctx context.Context, l *link, b *listing.Builder, params json.RawMessage) (json.RawMessage, error) {
	p := jsonrpc.NewParams(params)
	l.address(&p, noCapabilities)
	ctx, cancel := context.WithTimeoutCause(ctx, u.server.Timeout, errTimeout)
	defer cancel()
	// no sink: what the server asks meanwhile concerns another call
	reply, err := l.conn.Call(ctx, protocol.ListTools, p, nil)
	if err != nil {
		return nil, err
	}
	defer reply.Release()
	if reply.Error != nil {
		if string(jsonrpc.Get(reply.Error, "code")) == fmt.Sprint(protocol.CodeMethodNotFound) {
			return nil, nil // declared, yet not there: as good as empty
		}
		return nil, &Error{Server: u.server.Name, Kind: BadMessage, Text: u.server.Name + ": tools/list: " + errorText(u.redact(reply.Error))}
	}
	cursor, err := b.Add(listing.Tools, reply.Result)
	if err != nil {
		return nil, &Error{Server: u.server.Name, Kind: BadMessage, Text: u.server.Name + ": tools/list: " + err.Error()}
	}
	return cursor, nil
}

// Pauses before a listening stream that ended is opened again.
const (
	firstListenRetry = time.Second
	lastListenRetry  = time.Minute
)

// listen keeps a subscription to changed lists open for as long as the link lives.
func (u *Upstream) listen(ctx context.Context, s *Session, l *link) {
	ctx, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		for pause := firstListenRetry; ; pause = min(2*pause, lastListenRetry) {
			p := jsonrpc.NewParams(json.RawMessage(`{"notifications":{"toolsListChanged":true}}`))
			l.address(&p, noCapabilities)
			opened := time.Now()
			if !u.listenOnce(ctx, s, l, p) {
				return
			}
			if time.Since(opened) > lastListenRetry {
				pause = firstListenRetry
			}
			select {
			case <-ctx.Done():
				return
			case <-l.conn.Done():
				return
			case <-time.After(pause):
				u.wake() // something may have been missed
			}
		}
	}()
}

// listenOnce listens until the stream ends; false: the server does not offer it.
func (u *Upstream) listenOnce(ctx context.Context, s *Session, l *link, p jsonrpc.Params) bool {
	reply, err := l.conn.Call(ctx, protocol.Listen, p, s)
	if err != nil {
		return true
	}
	defer reply.Release()
	if reply.Error != nil {
		u.log.Debug().Str("answer", errorText(u.redact(reply.Error))).Msg("upstream does not let us listen")
	}
	return reply.Error == nil
}
