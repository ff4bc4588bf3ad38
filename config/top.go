package config

import (
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mainstem-mcp/mainstem/config/document"
	"github.com/mainstem-mcp/mainstem/naming"
)

// decodeTop reads everything but the servers into c. It returns mcpServerUrl, under
// which servers without an address are found; it is zero if there is none.
func (l *loader) decodeTop(c *Config) (base document.Value) {
	// Each entry knows its own file, so no file is needed here.
	o := document.NewObject(l.top)
	if v, there := o.Get("listen"); there {
		decodeListen(v, c)
	}
	o.SetBool("insecure_no_auth", &c.InsecureNoAuth)
	if v, there := o.Get("allowed_origins"); there {
		c.AllowedOrigins = decodeOrigins(v)
	}
	if v, there := o.Get("public_url"); there {
		c.PublicURL = decodePublicURL(v)
	}
	l.decodeStateDir(o, c)
	if v, there := o.Get("log"); there {
		decodeLog(v, &c.Log)
	}
	if v, there := o.Get("naming"); there {
		decodeNaming(v, &c.Naming)
	}
	if v, there := o.Get("limits"); there {
		decodeLimits(v, &c.Limits)
	}
	if v, there := o.Get("network"); there {
		decodeNetwork(v, c)
	}
	o.Get("mcpServers") // read by add
	base = decodeBase(o)
	if v, there := o.Foreign("$schema"); there { // how editors find the schema of a JSON file
		v.Text()
	}
	o.Close(map[string]string{
		"inputs":  "nobody is asked here: write ${NAME} where ${input:…} stands, and set that environment variable",
		"imports": "no other program's configuration is read here: see mainstem import",
	})
	l.checkExposure(o, c)
	return base
}

func decodeBase(o *document.Object) document.Value {
	v, there := o.Get("mcpServerUrl")
	if !there {
		return document.Value{}
	}
	// Checked here although no server may use it; a missing variable is reported there.
	if raw, ok := v.Filled(); ok && !strings.Contains(raw, "${") {
		checkURL(v, raw)
	}
	return v
}

func decodeListen(v document.Value, c *Config) {
	addr, ok := v.Text()
	if !ok {
		return
	}
	if why := badListen(addr); why != "" {
		v.Errorf("%s (want HOST:PORT such as 127.0.0.1:8390)", why)
		return
	}
	c.Listen = addr
}

func badListen(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "no address: " + strconv.Quote(document.Clip(addr))
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return "no port from 0 to 65535: " + strconv.Quote(document.Clip(port))
	}
	if strings.ContainsAny(host, " /@${}") {
		return "no host: " + strconv.Quote(document.Clip(host))
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
func (l *loader) checkExposure(o *document.Object, c *Config) {
	v, there := o.Get("listen")
	if !there || isLoopbackAddress(c.Listen) {
		return
	}
	if !c.InsecureNoAuth {
		v.Errorf("%s%s", c.Listen, exposed)
		return
	}
	v.Warnf("%s can be reached from other machines, and everybody there may call every tool (insecure_no_auth)", c.Listen)
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

func decodeOrigins(v document.Value) []string {
	items, _ := v.List()
	var origins []string
	for _, item := range items {
		raw, ok := item.Filled()
		if !ok {
			continue
		}
		u, err := url.Parse(raw)
		if err != nil || u.Scheme == "" || u.Host == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
			strings.Contains(u.Host, "*") {
			item.Errorf("no origin: %q (want SCHEME://HOST or SCHEME://HOST:PORT, one by one)", document.Clip(raw))
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

func decodePublicURL(v document.Value) string {
	raw, ok := v.Filled()
	if !ok {
		return ""
	}
	u, ok := checkURL(v, raw)
	if !ok {
		return ""
	}
	if u.User != nil || u.RawQuery != "" || u.ForceQuery {
		v.Errorf("has user info or a query (want https://HOST, with a path if there is one)")
		return ""
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		v.Warnf("plain http: whoever is in between reads everything (write https://)")
	}
	return strings.TrimRight(raw, "/")
}

func (l *loader) decodeStateDir(o *document.Object, c *Config) {
	v, there := o.Get("state_dir")
	if !there {
		dir, err := userDir(l.env, "XDG_STATE_HOME", ".local/state")
		if err != nil {
			l.report.Wrong(l.first, 1, "state_dir", "not given, and there is no home folder (write an absolute path)")
		}
		c.StateDir = filepath.Join(dir, "mainstem")
		return
	}
	x := &expander{env: func(name string) (string, bool) {
		s, ok := l.env(name)
		if !ok {
			v.Errorf("environment variable %s is not set (set it, or write ${%s:-fallback})", name, name)
		}
		return s, true
	}}
	if dir, ok := x.file(v); ok {
		c.StateDir = dir
	}
}

func decodeLog(v document.Value, log *Log) {
	if o, ok := v.Object(); ok {
		o.SetOneOf("level", &log.Level, "trace", "debug", "info", "warn", "error")
		o.SetOneOf("format", &log.Format, "auto", "console", "json")
		o.Close(nil)
	}
}

func decodeNaming(v document.Value, options *naming.Options) {
	o, ok := v.Object()
	if !ok {
		return
	}
	o.SetOneOf("mode", &options.Mode, naming.Always, naming.OnConflict, naming.Never)
	o.SetInt("max_length", &options.MaxLength, 24, 128)
	o.SetOneOf("charset", &options.Charset, naming.Model, naming.MCP, naming.OpenKBS)
	if v, there := o.Get("reserved"); there {
		options.Reserved, _ = v.Texts()
	}
	o.Close(nil)
}

func decodeLimits(v document.Value, limits *Limits) {
	o, ok := v.Object()
	if !ok {
		return
	}
	if v, there := o.Get("max_request_bytes"); there {
		if n, ok := v.Int(1, maxMessage); ok {
			limits.MaxRequestBytes = n
		}
	}
	o.SetInt("max_sessions", &limits.MaxSessions, 1, 1_000_000)
	o.SetDuration("session_idle", &limits.SessionIdle, time.Minute, 24*time.Hour)
	o.SetDuration("first_list_wait", &limits.FirstListWait, 0, time.Minute)
	o.SetDuration("max_call_duration", &limits.MaxCallDuration, time.Second, 24*time.Hour)
	o.SetInt("max_processes", &limits.MaxProcesses, 1, 100_000)
	o.Close(nil)
}

func decodeNetwork(v document.Value, c *Config) {
	o, ok := v.Object()
	if !ok {
		return
	}
	if v, there := o.Get("allow_private"); there {
		items, _ := v.List()
		for _, item := range items {
			raw, ok := item.Filled()
			if !ok {
				continue
			}
			if prefix, ok := parsePrefix(raw); ok {
				c.AllowPrivate = append(c.AllowPrivate, prefix)
			} else {
				item.Errorf("no network: %q (want one such as 10.0.0.0/8, or an address)", document.Clip(raw))
			}
		}
	}
	o.Close(nil)
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
