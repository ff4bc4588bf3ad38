package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mainstem-mcp/mainstem/jsonrpc"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
)

// A backend answers what the commands ask: the servers of a configuration themselves,
// or a running Mainstem. Errors are *admin.Error.
type backend interface {
	Servers(ctx context.Context, count bool) (admin.Servers, error)
	Detail(ctx context.Context, server string, count bool) (admin.Detail, error)
	Find(ctx context.Context, address string) (target, error)
	Call(ctx context.Context, t target, args json.RawMessage, s jsonrpc.Sink) (json.RawMessage, error)
	Check(ctx context.Context, servers []string) (admin.Checks, error)
	Catalog(ctx context.Context, format string) ([]byte, error)
	Close()
}

// A target is the tool that a person named.
type target struct {
	server string
	tool   string
	schema json.RawMessage // its input schema; nil if that is not known
}

// A source is the flags that say where answers come from.
type source struct {
	config  []string
	url     string
	keyEnv  string
	timeout timeout
}

func (s *source) flags(cmd *cobra.Command) {
	configFlag(cmd, &s.config)
	s.remoteFlags(cmd)
	cmd.Flags().Var(&s.timeout, "timeout", "how long to wait: a `DURATION` like 90s, or milliseconds")
}

func (s *source) remoteFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.url, "url", "", "ask the running Mainstem at `BASE`, like http://127.0.0.1:8390")
	cmd.Flags().StringVar(&s.keyEnv, "key-env", "", "with --url: the environment `VARIABLE` that holds the client key")
}

// remote returns the base URL and the key of a running Mainstem; a base of nil if the
// configuration is to be used.
func (s *source) remote(a *app) (base *url.URL, key string, err error) {
	switch {
	case s.url == "" && s.keyEnv != "":
		return nil, "", usage("--key-env goes with --url")
	case s.url == "":
		return nil, "", nil
	case len(s.config) > 0:
		return nil, "", usage("--config and --url exclude each other")
	}
	base, err = url.Parse(strings.TrimRight(s.url, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || base.RawQuery != "" || base.Fragment != "" {
		return nil, "", usage("--url: want the address of a running Mainstem, like http://127.0.0.1:8390")
	}
	if base.User != nil {
		return nil, "", usage("--url: no user info there (give a client key with --key-env)")
	}
	if s.keyEnv != "" {
		if key, _ = a.env(s.keyEnv); strings.TrimSpace(key) == "" {
			return nil, "", usage("--key-env: environment variable %s is not set", s.keyEnv)
		}
	}
	return base, strings.TrimSpace(key), nil
}

func (s *source) open(ctx context.Context, a *app) (backend, error) {
	base, key, err := s.remote(a)
	if err != nil {
		return nil, err
	}
	if base != nil {
		return newRemote(base, key, time.Duration(s.timeout)), nil
	}
	return openLocal(ctx, a, s.config, time.Duration(s.timeout))
}

// maxTimeout is the longest --timeout.
const maxTimeout = 24 * time.Hour

// A timeout is the flag --timeout; 0 if it was not given.
type timeout time.Duration

func (t *timeout) String() string {
	if *t == 0 {
		return ""
	}
	return time.Duration(*t).String()
}

func (t *timeout) Type() string { return "duration" }

// Set reads a duration. A bare number is milliseconds, as in mcporter.
func (t *timeout) Set(text string) error {
	d, err := time.ParseDuration(text)
	if ms, e := strconv.ParseInt(text, 10, 64); e == nil {
		// more than fits is more than maxTimeout
		d, err = time.Duration(min(ms, maxTimeout.Milliseconds()+1))*time.Millisecond, nil
	}
	if err != nil || d <= 0 || d > maxTimeout {
		return fmt.Errorf("want a duration like 90s, or milliseconds, above 0 and up to %v", maxTimeout)
	}
	*t = timeout(d)
	return nil
}
