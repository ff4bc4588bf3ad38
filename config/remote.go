package config

import (
	"io"
	"os"
	"strings"

	"github.com/mainstem-mcp/mainstem/config/document"
)

// remote reads what belongs to url. reached is false if nothing is requested: then
// the keys are only looked at.
func (r *serverReader) remote(reached bool) {
	r.address(reached)
	if v, there := r.Get("headers"); there {
		r.s.Headers = r.headers(v)
	}
	bearer, hasBearer := r.Get("bearer_token_env_var")
	auth, hasAuth := r.Get("auth")
	if hasBearer && hasAuth {
		bearer.Errorf("both bearer_token_env_var and auth (keep one)")
	}
	if hasAuth {
		r.auth(auth)
	}
	if hasBearer {
		r.s.Auth = Auth{Type: AuthHeader, Header: "Authorization", Scheme: "Bearer"}
		r.credentialEnv(bearer)
	}
	r.sentTwice()
}

func (r *serverReader) address(reached bool) {
	v, there := r.Get("url")
	if pasted, too := r.Foreign("httpUrl"); too {
		if there {
			pasted.Errorf("both url and httpUrl (keep url)")
		}
		v, there = pasted, true
	}
	name := ""
	if !there {
		if v = r.base; !reached || v.IsZero() {
			return
		}
		name = r.s.Name
	}
	raw, ok := v.Filled()
	if !ok {
		return
	}
	r.checkLiteralURL(v, raw)
	url, ok := r.x.expand(v, raw)
	if !ok {
		r.identify("url", raw+" "+name)
		return
	}
	if name != "" {
		url = below(strings.TrimSpace(url), name)
	}
	r.identify("url", url)
	if strings.TrimSpace(url) == "" {
		r.x.fail(v, "url is empty")
		return
	}
	setURL(v, r.s, url)
}

func (r *serverReader) headers(v document.Value) []Header {
	entries, _ := v.Entries()
	var out []Header
	seen := map[string]bool{} // in lower case
	for _, e := range entries {
		if !isToken(e.Key) {
			e.Errorf("no legal name of a header (want letters, digits and any of !#$%%&'*+-.^_`|~)")
			continue
		}
		lower := strings.ToLower(e.Key)
		if seen[lower] {
			e.Errorf("the same header twice: case does not count (keep one)")
		}
		seen[lower] = true
		if isOurs(e.Key) {
			e.Warnf("Mainstem sets this header itself (leave it out)")
		}
		raw, ok := e.Text()
		if !ok {
			continue
		}
		r.checkLiteral(e.Value, raw, secretHeader.MatchString(e.Key))
		r.identify("headers."+lower, raw)
		out = append(out, Header{e.Key, r.headerValue(e, raw)})
	}
	return out
}

func (r *serverReader) headerValue(e document.Entry, raw string) Secret {
	s, ok := r.x.expand(e.Value, raw)
	if !ok {
		return Secret{}
	}
	s, legal := trimHeader(s)
	if !legal {
		e.Errorf("server %q: the value of header %s holds a control or non-ASCII character (want printable ASCII)", r.s.Name, e.Key)
		return Secret{}
	}
	// A variable that is set to nothing must not become a request without a credential,
	// or with a scheme alone.
	bare := !strings.Contains(s, " ") && strings.Contains(strings.TrimSpace(raw), " ")
	if secretHeader.MatchString(e.Key) && (s == "" || bare) {
		r.x.fail(e.Value, "header "+e.Key+" has an empty value")
	}
	return NewSecret(s)
}

// sentTwice reports a header that headers and auth both set.
func (r *serverReader) sentTwice() {
	name := r.s.Auth.Header
	switch r.s.Auth.Type {
	case AuthNone:
		return
	case AuthOAuth, AuthClientCredentials:
		name = "Authorization"
	}
	v, _ := r.Find("headers")
	if !v.IsMapping() {
		return
	}
	entries, _ := v.Entries()
	for _, e := range entries {
		if strings.EqualFold(e.Key, name) {
			e.Errorf("both here and as the credential of auth or bearer_token_env_var (keep one)")
		}
	}
}

// credentialEnv takes the credential from the variable that v names.
func (r *serverReader) credentialEnv(v document.Value) {
	name, ok := variableName(v)
	if !ok {
		return
	}
	r.s.Auth.CredentialEnv = name
	r.identify("credential_env", name)
	if secret, set := r.env(name); !set {
		r.x.missing(v, name)
	} else {
		r.credential(v, secret, "environment variable "+name)
	}
}

// credentialFile takes the credential from the file that v names.
func (r *serverReader) credentialFile(v document.Value) {
	if raw, ok := v.Text(); ok {
		r.identify("credential_file", raw)
	}
	name, ok := r.x.file(v)
	if !ok {
		return
	}
	r.s.Auth.CredentialFile = name
	checkSecretFile(v, name)
	secret, err := readSecret(name)
	if err != nil {
		r.x.fail(v, "credential file: "+err.Error())
		return
	}
	r.credential(v, secret, "credential file "+name)
}

// credential sets the header value that secret, which comes from source, makes.
func (r *serverReader) credential(v document.Value, secret, source string) {
	secret, legal := trimHeader(secret)
	auth := &r.s.Auth
	switch {
	case !legal:
		v.Errorf("server %q: %s, for header %s, holds a control or non-ASCII character (want printable ASCII)", r.s.Name, source, auth.Header)
	case secret == "":
		r.x.fail(v, source+" is empty")
	case auth.Scheme == "":
		auth.Credential = NewSecret(secret)
	default:
		auth.Credential = NewSecret(auth.Scheme + " " + secret)
	}
}

// variableName reads the name of a variable. It never shows what else stands there:
// people paste the secret itself.
func variableName(v document.Value) (string, bool) {
	name, ok := v.Filled()
	if ok && !isVariable(name) {
		v.Errorf("no name of an environment variable (write the name alone, such as API_TOKEN, not ${API_TOKEN} and not its value)")
		return "", false
	}
	return name, ok
}

// readSecret returns the content of a small file.
func readSecret(name string) (string, error) {
	const most = 64 << 10
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	return string(data), err
}

func checkSecretFile(v document.Value, name string) {
	if othersCanRead(name) {
		v.Warnf("this file holds a secret and can be read by others (chmod 600)")
	}
}

// trimHeader cuts white space around a header value; legal is false if what is
// left is not printable ASCII (RFC 9110, section 5.5).
func trimHeader(s string) (value string, legal bool) {
	s = strings.Trim(s, " \t\r\n")
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' {
			return "", false
		}
	}
	return s, true
}

// isToken reports whether name may name a header (RFC 9110, section 5.6.2).
func isToken(name string) bool {
	for _, c := range []byte(name) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// isOurs reports whether the transport or the protocol decides about a header.
func isOurs(name string) bool {
	name = strings.ToLower(name)
	switch name {
	case "accept", "connection", "content-length", "content-type", "transfer-encoding":
		return true
	}
	return strings.HasPrefix(name, "mcp-")
}
