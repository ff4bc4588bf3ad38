package config

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mainstem-mcp/mainstem/naming"
)

// decodeTop reads everything but the servers into c. It returns mcpServerUrl, under
// which servers without an address are found; its node is nil if there is none.
func (l *loader) decodeTop(c *Config) (base value) {
	// Each entry knows its own file, so no file is needed here.
	o := &object{entries: l.top}
	if v, there := o.get("listen"); there {
		decodeListen(v, c)
	}
	o.setBool("insecure_no_auth", &c.InsecureNoAuth)
	if v, there := o.get("allowed_origins"); there {
		c.AllowedOrigins = decodeOrigins(v)
	}
	if v, there := o.get("public_url"); there {
		c.PublicURL = decodePublicURL(v)
	}
	l.decodeStateDir(o, c)
	if v, there := o.get("log"); there {
		decodeLog(v, &c.Log)
	}
	if v, there := o.get("naming"); there {
		decodeNaming(v, &c.Naming)
	}
	if v, there := o.get("limits"); there {
		decodeLimits(v, &c.Limits)
	}
	if v, there := o.get("network"); there {
		decodeNetwork(v, c)
	}
	o.known = append(o.known, "mcpServers") // read by add
	base = decodeBase(o)
	if v, there := o.foreign("$schema"); there { // how editors find the schema of a JSON file
		v.text()
	}
	o.close(map[string]string{
		"inputs":  "nobody is asked here: write ${NAME} where ${input:…} stands, and set that environment variable",
		"imports": "no other program's configuration is read here: see mainstem import",
	})
	l.checkExposure(o, c)
	return base
}

func decodeBase(o *object) value {
	v, there := o.get("mcpServerUrl")
	if !there {
		return value{}
	}
	// Checked here although no server may use it; a missing variable is reported there.
	if raw, ok := v.filled(); ok && !strings.Contains(raw, "${") {
		checkURL(v, raw)
	}
	return v
}

func decodeListen(v value, c *Config) {
	addr, ok := v.text()
	if !ok {
		return
	}
	if why := badListen(addr); why != "" {
		v.errorf("%s (want HOST:PORT such as 127.0.0.1:8390)", why)
		return
	}
	c.Listen = addr
}

func badListen(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "no address: " + strconv.Quote(clip(addr))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "no port from 0 to 65535: " + strconv.Quote(clip(port))
	}
	if strings.ContainsAny(host, " /@${}") {
		return "no host: " + strconv.Quote(clip(host))
	}
	return ""
}

// CheckListen reports why addr may not be listened on: it is no address, or it can be
// reached from other machines although nobody is asked who they are. The address
// may come from a flag instead of the file.
func CheckListen(addr string, insecureNoAuth bool) error {
	if why := badListen(addr); why != "" {
		return listenError(why + " (want HOST:PORT such as 127.0.0.1:8390)")
	}
	if !insecureNoAuth && !isLoopbackAddress(addr) {
		return listenError(addr + exposed)
	}
	return nil
}

const exposed = " can be reached from other machines and nobody would be asked for a key (listen on 127.0.0.1, or set insecure_no_auth: true)"

type listenError string

func (e listenError) Error() string { return "listen: " + string(e) }

// checkExposure refuses to serve other machines without authentication.
func (l *loader) checkExposure(o *object, c *Config) {
	v, there := o.get("listen")
	if !there || isLoopbackAddress(c.Listen) {
		return
	}
	if !c.InsecureNoAuth {
		v.errorf("%s%s", c.Listen, exposed)
		return
	}
	v.warnf("%s can be reached from other machines, and everybody there may call every tool (insecure_no_auth)", c.Listen)
}

// isLoopbackAddress reports whether nobody else can reach what listens on addr. A name
// under .localhost may resolve to anything, and is not one that we answer to.
func isLoopbackAddress(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	return err == nil && isLoopback(host) && !strings.HasSuffix(strings.TrimSuffix(strings.ToLower(host), "."), ".localhost")
}

// isLoopback reports whether host is this machine by its name alone.
func isLoopback(host string) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func decodeOrigins(v value) []string {
	items, _ := v.list()
	var origins []string
	for _, item := range items {
		raw, ok := item.filled()
		if !ok {
			continue
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
			strings.Contains(u.Host, "*") {
			item.errorf("no origin: %q (want SCHEME://HOST or SCHEME://HOST:PORT, one by one)", clip(raw))
			continue
		}
		origins = append(origins, origin(u))
	}
	return origins
}

// origin spells u's origin as browsers do: lower case, no default port.
func origin(u *url.URL) string {
	host := strings.ToLower(u.Host)
	switch {
	case u.Scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	case u.Scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return u.Scheme + "://" + host
}

func decodePublicURL(v value) string {
	raw, ok := v.filled()
	if !ok {
		return ""
	}
	u, ok := checkURL(v, raw)
	if !ok {
		return ""
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery {
		v.errorf("has user info or a query (want https://HOST, with a path if there is one)")
		return ""
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		v.warnf("plain http: whoever is in between reads everything (write https://)")
	}
	return strings.TrimRight(raw, "/")
}

func (l *loader) decodeStateDir(o *object, c *Config) {
	v, there := o.get("state_dir")
	if !there {
		dir, err := userDir(l.env, "XDG_STATE_HOME", ".local/state")
		if err != nil {
			l.report.error(l.first, 1, "state_dir", "not given, and there is no home folder (write an absolute path)")
		}
		c.StateDir = filepath.Join(dir, "mainstem")
		return
	}
	x := &expander{env: func(name string) (string, bool) {
		s, ok := l.env(name)
		if !ok {
			v.errorf("environment variable %s is not set (set it, or write ${%s:-fallback})", name, name)
		}
		return s, true
	}}
	if dir, ok := x.file(v); ok {
		c.StateDir = dir
	}
}

func decodeLog(v value, log *Log) {
	if o, ok := v.object(); ok {
		o.setOneOf("level", &log.Level, "trace", "debug", "info", "warn", "error")
		o.setOneOf("format", &log.Format, "auto", "console", "json")
		o.close(nil)
	}
}

func decodeNaming(v value, options *naming.Options) {
	o, ok := v.object()
	if !ok {
		return
	}
	o.setOneOf("mode", &options.Mode, naming.Always, naming.OnConflict, naming.Never)
	o.setInt("max_length", &options.MaxLength, 24, 128)
	o.setOneOf("charset", &options.Charset, naming.Model, naming.MCP, naming.OpenKBS)
	if v, there := o.get("reserved"); there {
		options.Reserved, _ = v.texts()
	}
	o.close(nil)
}

func decodeLimits(v value, limits *Limits) {
	o, ok := v.object()
	if !ok {
		return
	}
	if v, there := o.get("max_request_bytes"); there {
		if n, ok := v.integer(1, maxMessage); ok {
			limits.MaxRequestBytes = n
		}
	}
	o.setInt("max_sessions", &limits.MaxSessions, 1, 1_000_000)
	o.setDuration("session_idle", &limits.SessionIdle, time.Minute, 24*time.Hour)
	o.setDuration("first_list_wait", &limits.FirstListWait, 0, time.Minute)
	o.setDuration("max_call_duration", &limits.MaxCallDuration, time.Second, 24*time.Hour)
	o.setInt("max_processes", &limits.MaxProcesses, 1, 100_000)
	o.close(nil)
}

func decodeNetwork(v value, c *Config) {
	o, ok := v.object()
	if !ok {
		return
	}
	if v, there := o.get("allow_private"); there {
		items, _ := v.list()
		for _, item := range items {
			raw, ok := item.filled()
			if !ok {
				continue
			}
			if prefix, ok := parsePrefix(raw); ok {
				c.AllowPrivate = append(c.AllowPrivate, prefix)
			} else {
				item.errorf("no network: %q (want one such as 10.0.0.0/8, or an address)", clip(raw))
			}
		}
	}
	o.close(nil)
}

func parsePrefix(s string) (netip.Prefix, bool) {
	if prefix, err := netip.ParsePrefix(s); err == nil {
		return prefix.Masked(), true
	}
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), true
	}
	return netip.Prefix{}, false
}
