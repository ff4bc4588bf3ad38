package config

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/mainstem-mcp/mainstem/config/document"
)

// checkURL parses an http or https URL. What it reports never shows the URL, which
// may hold a secret.
func checkURL(v document.Value, raw string) (*url.URL, bool) {
	u, err := url.Parse(raw)
	why := ""
	switch {
	case err != nil:
		why = "no URL"
	case u.Scheme != "http" && u.Scheme != "https":
		why = "not an http or https URL"
	case u.Hostname() == "":
		why = "a URL without a host"
	case strings.Contains(raw, "#"):
		why = "a URL with a fragment, which is never sent"
	case u.Port() != "":
		if n, err := strconv.ParseUint(u.Port(), 10, 16); err != nil || n == 0 {
			why = "a URL whose port is not from 1 to 65535"
		}
	}
	if why == "" && strings.IndexFunc(raw, func(r rune) bool { return r <= ' ' || r == 0x7f }) >= 0 {
		why = "a URL with white space"
	}
	if why != "" {
		v.Errorf("%s (want http://HOST/PATH or https://HOST/PATH)", why)
		return nil, false
	}
	return u, true
}

// setURL makes raw, expanded, the server's address.
func setURL(v document.Value, s *Server, raw string) {
	raw = strings.TrimSpace(raw)
	u, ok := checkURL(v, raw)
	if !ok {
		return
	}
	if u.Scheme == "http" && !isLoopback(u.Hostname()) {
		v.Warnf("plain http to another machine: whoever is in between reads everything (write https://)")
	}
	s.URL = raw
	s.ShownURL = (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// below appends a server's name to the path of base, whatever its query.
func below(base, name string) string {
	path, query, found := strings.Cut(base, "?")
	path = strings.TrimRight(path, "/") + "/" + name
	if found {
		return path + "?" + query
	}
	return path
}
