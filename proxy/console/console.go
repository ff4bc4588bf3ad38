// Package console knows the REST routes: what a person or a script can ask over HTTP.
package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/mainstem-mcp/mainstem/proxy/access"
	"github.com/mainstem-mcp/mainstem/proxy/admin"
)

// Prefix is where the routes stand.
const Prefix = "/api/v1/"

// Options are settings of a Console.
type Options struct {
	MaxBody int64 // of a request; 0: 4 MiB
}

// A Console serves the REST routes. Whoever mounts it has checked Host and Origin.
type Console struct {
	// set by New, never changed
	admin *admin.Admin
	o     Options
	mux   *http.ServeMux
}

// New returns the routes over a.
func New(a *admin.Admin, o Options) *Console {
	if o.MaxBody == 0 {
		o.MaxBody = 4 << 20
	}
	c := &Console{admin: a, o: o, mux: http.NewServeMux()}
	c.route(http.MethodGet, "servers", c.servers)
	c.route(http.MethodGet, "servers/{server}", c.server)
	c.route(http.MethodGet, "servers/{server}/tools", c.tools)
	c.route(http.MethodPost, "servers/{server}/tools/{tool}/call", c.call)
	c.route(http.MethodPost, "servers/{server}/check", c.check)
	c.route(http.MethodGet, "catalog", c.catalog)
	c.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		problem(w, http.StatusNotFound, &admin.Error{Kind: admin.Unknown, Message: "no such route"})
	})
	return c
}

// route serves one path with one method. Its wildcards are single path segments,
// percent-decoded one by one, so that a name may hold a slash.
func (c *Console) route(method, path string, serve func(http.ResponseWriter, *http.Request) error) {
	c.mux.HandleFunc(method+" "+Prefix+path, func(w http.ResponseWriter, r *http.Request) {
		if err := serve(w, r); err != nil {
			fail(w, err)
		}
	})
	allow := method
	if method == http.MethodGet {
		allow += ", " + http.MethodHead
	}
	c.mux.HandleFunc(Prefix+path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Allow", allow)
		problem(w, http.StatusMethodNotAllowed, &admin.Error{Kind: admin.Usage, Message: fmt.Sprintf("method %s is not allowed here (want %s)", r.Method, method)})
	})
}

// ServeHTTP serves one request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	c.mux.ServeHTTP(w, r)
}

func (c *Console) servers(w http.ResponseWriter, r *http.Request) error {
	all, err := c.admin.Servers(r.Context(), true)
	if err != nil {
		return err
	}
	return answer(w, admin.Encode(all))
}

func (c *Console) server(w http.ResponseWriter, r *http.Request) error {
	d, err := c.admin.Detail(r.Context(), r.PathValue("server"), true)
	if err != nil {
		return err
	}
	return answer(w, admin.Encode(d.Server))
}

func (c *Console) tools(w http.ResponseWriter, r *http.Request) error {
	d, err := c.admin.Detail(r.Context(), r.PathValue("server"), true)
	if err != nil {
		return err
	}
	return answer(w, admin.Encode(admin.Tools{Tools: d.Tools}))
}

func (c *Console) call(w http.ResponseWriter, r *http.Request) error {
	args, err := c.arguments(w, r)
	if err != nil {
		return err
	}
	result, err := c.admin.Call(r.Context(), access.Caller{}, r.PathValue("server"), r.PathValue("tool"), args, nil)
	if err != nil {
		return err
	}
	return answer(w, result)
}

// arguments reads the body: one object, or nothing.
func (c *Console) arguments(w http.ResponseWriter, r *http.Request) (json.RawMessage, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, c.o.MaxBody))
	if err != nil {
		return nil, err
	}
	return admin.Arguments(body)
}

// checked shows one check at the top level, and also as check shows several.
type checked struct {
	admin.Check
	admin.Checks
}

func (c *Console) check(w http.ResponseWriter, r *http.Request) error {
	all, err := c.admin.Check(r.Context(), r.PathValue("server"))
	if err != nil {
		return err
	}
	return answer(w, admin.Encode(checked{all.Checks[0], all}))
}

func (c *Console) catalog(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if view := query.Get("view"); view != "" {
		return &admin.Error{Kind: admin.Unknown, Message: fmt.Sprintf("unknown view %q", view)}
	}
	format := query.Get("format")
	if format == "" {
		format = admin.Markdown
	}
	text, err := c.admin.Catalog(r.Context(), format)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	etag := `"` + hex.EncodeToString(sum[:16]) + `"`
	header := w.Header()
	header.Set("ETag", etag)
	header.Set("Cache-Control", "no-cache") // ask each time, with the ETag
	header.Set("Content-Type", contentTypes[format])
	if matches(r.Header.Values("If-None-Match"), etag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	_, _ = w.Write(text) // a client that is gone needs no answer
	return nil
}

// contentTypes by format. The xml form is a run of elements, no XML document.
var contentTypes = map[string]string{
	admin.Markdown: "text/markdown; charset=utf-8",
	admin.XML:      "text/plain; charset=utf-8",
	admin.JSON:     "application/json",
}

// matches reports whether a tag stands in If-None-Match (RFC 9110, section 13.1.2).
func matches(fields []string, etag string) bool {
	for _, field := range fields {
		for one := range strings.SplitSeq(field, ",") {
			one = strings.TrimSpace(one)
			if one == "*" || strings.TrimPrefix(one, "W/") == etag {
				return true
			}
		}
	}
	return false
}

func answer(w http.ResponseWriter, body []byte) error {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // a client that is gone needs no answer
	return nil
}

// fail answers with an error.
func fail(w http.ResponseWriter, err error) {
	var known *admin.Error
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &known):
		problem(w, status(known), known)
	case errors.As(err, &large):
		problem(w, http.StatusRequestEntityTooLarge, &admin.Error{Kind: admin.Usage, Message: fmt.Sprintf("body: more than %d bytes (limits.max_request_bytes)", large.Limit)})
	default:
		problem(w, http.StatusBadRequest, &admin.Error{Kind: admin.Usage, Message: "body: " + err.Error()})
	}
}

func status(e *admin.Error) int {
	switch e.Kind {
	case admin.Usage:
		return http.StatusBadRequest
	case admin.Unknown:
		return http.StatusNotFound
	case admin.ToolFailed:
		return http.StatusUnprocessableEntity
	case admin.Timeout:
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// details is a problem document (RFC 9457) with our own error in it.
type details struct {
	Type   string       `json:"type"`
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail"`
	Error  *admin.Error `json:"error"`
}

func problem(w http.ResponseWriter, status int, e *admin.Error) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(admin.Encode(details{"about:blank", http.StatusText(status), status, e.Message, e}))
}
