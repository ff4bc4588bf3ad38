package front

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// origins know which web pages may use us, and under which names we may be called. A
// page of any site can send requests to a server on its visitor's machine, and a site
// that lets its own name resolve to that machine is, to the browser, of the same
// origin (DNS rebinding).
type origins struct {
	allowed map[string]bool // scheme://host[:port]
	public  string          // host of public_url
}

func newOrigins(allowed []string, publicURL string) origins {
	o := origins{allowed: map[string]bool{}}
	for _, origin := range allowed {
		o.allowed[normal(origin)] = true
	}
	if u, err := url.Parse(publicURL); err == nil && u.Host != "" {
		o.public = hostOf(u.Host)
		o.allowed[normal(u.Scheme+"://"+u.Host)] = true
	}
	return o
}

// normal is an origin as it is compared: lower case, without a port that says nothing.
func normal(origin string) string {
	origin = strings.ToLower(strings.TrimSuffix(origin, "/"))
	switch {
	case strings.HasPrefix(origin, "http://"):
		return strings.TrimSuffix(origin, ":80")
	case strings.HasPrefix(origin, "https://"):
		return strings.TrimSuffix(origin, ":443")
	}
	return origin
}

// allow reports whether a page of this origin may use us at this host.
func (o origins) allow(origin, host string) bool {
	origin = normal(origin)
	if o.allowed[origin] {
		return true
	}
	scheme, place, ok := strings.Cut(origin, "://")
	if !ok || scheme != "http" && scheme != "https" || strings.ContainsAny(place, "/@?#") {
		return false
	}
	name := hostOf(place)
	if isLoopbackName(name) {
		return true
	}
	// Our own pages, where we are called by address: an address cannot be rebound.
	_, err := netip.ParseAddr(name)
	return err == nil && normal(scheme+"://"+host) == origin
}

// knowsHost reports whether a Host header is one that a listener on loopback is called
// by.
func (o origins) knowsHost(host string) bool {
	name := hostOf(host)
	return isLoopbackName(name) || o.public != "" && name == o.public
}

// hostOf is the host of host[:port], in lower case and without the brackets of an IPv6
// address; "" if it is malformed.
func hostOf(hostport string) string {
	host := hostport
	if i := strings.LastIndexByte(hostport, ':'); i > strings.LastIndexByte(hostport, ']') {
		if strings.Trim(hostport[i+1:], "0123456789") != "" {
			return ""
		}
		host = hostport[:i]
	}
	inner, bracketed := strings.CutPrefix(host, "[")
	if bracketed {
		if host, bracketed = strings.CutSuffix(inner, "]"); !bracketed {
			return ""
		}
	} else if strings.Contains(host, ":") {
		return ""
	}
	return strings.ToLower(host)
}

func isLoopbackName(host string) bool {
	if host == "localhost" {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

func isLoopback(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

// Headers that a page may send and read beyond those that every page may.
const (
	sendable = "Content-Type, Accept, Authorization, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name"
	readable = "Mcp-Session-Id, WWW-Authenticate, Retry-After"
)

// crossOrigin adds what lets a page of an allowed origin see the answer (Fetch
// standard, CORS protocol), errors included. It answers a preflight itself and reports
// that.
func crossOrigin(w http.ResponseWriter, r *http.Request, origin string) bool {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", readable)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", sendable+paramHeaders(r))
	h.Set("Access-Control-Max-Age", "600")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	w.WriteHeader(http.StatusNoContent)
	return true
}

// paramHeaders lists the Mcp-Param-* headers that a preflight asks for. Which there are
// depends on the tools.
func paramHeaders(r *http.Request) string {
	var out strings.Builder
	for _, line := range r.Header["Access-Control-Request-Headers"] {
		for name := range strings.SplitSeq(line, ",") {
			name = strings.ToLower(strings.TrimSpace(name))
			if strings.HasPrefix(name, "mcp-param-") {
				out.WriteString(", " + name)
			}
		}
	}
	return out.String()
}
