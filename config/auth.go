package config

import (
	"strings"

	"github.com/mainstem-mcp/mainstem/config/document"
)

// auth reads the mapping auth of a server.
func (r *serverReader) auth(v document.Value) {
	o, ok := v.Object()
	if !ok {
		return
	}
	auth := &r.s.Auth
	kind, there := o.Get("type")
	if !there {
		v.Errorf("has no type (want none, header, oauth or client_credentials)")
	} else if s, ok := kind.OneOf(AuthNone, AuthHeader, AuthOAuth, AuthClientCredentials); ok {
		auth.Type = s
	}
	r.identify("auth", auth.Type)
	r.headerAuth(o, auth)
	oauth := &OAuth{Registration: "auto"}
	r.client(o, oauth)
	r.flow(o, oauth)
	if there && auth.Type == kind.Scalar() { // a legal one
		o.Only("type "+auth.Type, append(authKeys(auth.Type), "type")...)
	}
	switch auth.Type {
	case AuthOAuth:
		auth.OAuth = oauth
		checkOAuth(o, oauth)
	case AuthClientCredentials:
		auth.OAuth = oauth
		checkClientCredentials(o, oauth)
	}
	o.Close(map[string]string{
		"credential":    "write credential_env_var or credential_file",
		"client_secret": "write client_secret_env_var or client_secret_file",
		"token":         "write credential_env_var or credential_file",
	})
}

// authKeys are the keys that go with a type.
func authKeys(kind string) []string {
	switch kind {
	case AuthHeader:
		return []string{"header", "scheme", "credential_env_var", "credential_file"}
	case AuthOAuth:
		return []string{"registration", "client_id", "client_secret_env_var", "client_secret_file", "client_metadata_url",
			"token_endpoint_auth_method", "scopes", "authorization_params", "token_params", "require_refresh_token"}
	case AuthClientCredentials:
		return []string{"client_id", "client_secret_env_var", "client_secret_file", "private_key_file",
			"token_endpoint_auth_method", "scopes", "token_params"}
	}
	return nil
}

// headerAuth reads the keys of type header.
func (r *serverReader) headerAuth(o *document.Object, auth *Auth) {
	isHeader := auth.Type == AuthHeader
	if isHeader {
		auth.Header, auth.Scheme = "Authorization", "Bearer"
	}
	scheme, hasScheme := o.Get("scheme")
	if hasScheme {
		if s, ok := scheme.Text(); ok {
			r.scheme(scheme, s, auth)
		}
	}
	if v, there := o.Get("header"); there {
		if s, ok := v.Filled(); ok && !isToken(s) {
			v.Errorf("no legal name of a header (want letters, digits and any of !#$%%&'*+-.^_`|~)")
		} else if ok && isHeader {
			auth.Header = s
			if !hasScheme && !strings.EqualFold(s, "Authorization") {
				v.Warnf("sends %q (write scheme: \"\" if the server wants the bare value, scheme: Bearer if not)", s+": Bearer …")
			}
		}
	}
	env, hasEnv := o.Get("credential_env_var")
	file, hasFile := o.Get("credential_file")
	if !isHeader {
		return
	}
	r.identify("auth.header", auth.Header+" "+auth.Scheme)
	switch {
	case hasEnv && hasFile:
		file.Errorf("both credential_env_var and credential_file (keep one)")
	case hasEnv:
		r.credentialEnv(env)
	case hasFile:
		r.credentialFile(file)
	default:
		o.Errorf("server %q has no credential (write credential_env_var or credential_file)", r.s.Name)
	}
}

func (r *serverReader) scheme(v document.Value, s string, auth *Auth) {
	s, legal := trimHeader(s)
	if !legal {
		v.Errorf("server %q: the scheme holds a control or non-ASCII character (want printable ASCII)", r.s.Name)
		return
	}
	if looksSecret(s) {
		r.literal(v)
	}
	auth.Scheme = s
}

// client reads how we identify ourselves to an authorization server.
func (r *serverReader) client(o *document.Object, to *OAuth) {
	o.SetOneOf("registration", &to.Registration, "auto", "client_metadata", "dynamic", "manual")
	if v, there := o.Get("client_id"); there {
		to.ClientID, _ = v.Filled()
	}
	if v, there := o.Get("client_secret_env_var"); there {
		if name, ok := variableName(v); ok {
			to.ClientSecretEnv = name
			r.clientSecret(v, name, to)
		}
	}
	if v, there := o.Get("client_secret_file"); there {
		to.ClientSecretFile = r.secretFile(v)
	}
	if v, there := o.Get("private_key_file"); there {
		to.PrivateKeyFile = r.secretFile(v)
	}
	if v, there := o.Get("client_metadata_url"); there {
		if raw, ok := v.Filled(); ok {
			if u, ok := checkURL(v, raw); ok {
				to.ClientMetadataURL = raw
				if u.Scheme != "https" || u.Path == "" || u.Path == "/" {
					v.Errorf("not the address of a document (want https://HOST/PATH)")
				}
			}
		}
	}
	o.SetOneOf("token_endpoint_auth_method", &to.TokenEndpointAuthMethod,
		"none", "client_secret_basic", "client_secret_post", "private_key_jwt")
	for _, fact := range []string{to.Registration, to.ClientID, to.ClientSecretEnv, to.ClientSecretFile, to.PrivateKeyFile,
		to.ClientMetadataURL, to.TokenEndpointAuthMethod} {
		r.identify("auth.client", fact)
	}
}

func (r *serverReader) clientSecret(v document.Value, name string, to *OAuth) {
	secret, set := r.env(name)
	secret = strings.TrimSpace(secret)
	switch {
	case !set:
		r.x.missing(v, name)
	case secret == "":
		r.x.fail(v, "environment variable "+name+" is empty")
	default:
		to.ClientSecret = NewSecret(secret)
	}
}

func (r *serverReader) secretFile(v document.Value) string {
	name, ok := r.x.file(v)
	if ok {
		checkSecretFile(v, name)
	}
	return name
}

// flow reads what is asked of an authorization server.
func (r *serverReader) flow(o *document.Object, to *OAuth) {
	if v, there := o.Get("scopes"); there {
		items, _ := v.Texts()
		for i, s := range items {
			if strings.ContainsAny(s, " \t\r\n\"\\") {
				v.Errorf("scope %d holds white space, a quote or a backslash (write one scope an item)", i+1)
			}
			r.identify("auth.scope", s)
		}
		to.Scopes = items
	}
	if v, there := o.Get("authorization_params"); there {
		to.AuthorizationParams = r.params(v)
	}
	if v, there := o.Get("token_params"); there {
		to.TokenParams = r.params(v)
	}
	o.SetBool("require_refresh_token", &to.RequireRefreshToken)
}

// isReserved reports parameters that the flow sets itself: another value would break
// it, or undo what protects it.
func isReserved(name string) bool {
	switch strings.ToLower(name) {
	case "client_id", "client_secret", "client_assertion", "client_assertion_type", "code", "code_challenge", "code_challenge_method",
		"code_verifier", "grant_type", "redirect_uri", "refresh_token", "request", "request_uri", "resource", "response_mode",
		"response_type", "scope", "state":
		return true
	}
	return false
}

func (r *serverReader) params(v document.Value) []Param {
	entries, _ := v.Entries()
	var out []Param
	for _, e := range entries {
		s, ok := e.Text()
		switch {
		case !ok:
			continue
		case e.Key == "":
			e.Errorf("a parameter without a name")
			continue
		case strings.EqualFold(e.Key, "scope"):
			e.Errorf("set by the flow itself (write scopes)")
		case isReserved(e.Key):
			e.Errorf("set by the flow itself (leave it out)")
		}
		r.checkLiteral(e.Value, s, false)
		r.identify("auth.param", v.Path()+" "+e.Key+" "+s)
		out = append(out, Param{e.Key, s})
	}
	return out
}

func checkOAuth(o *document.Object, c *OAuth) {
	clientKeys := []string{"client_id", "client_secret_env_var", "client_secret_file"}
	switch {
	case c.Registration == "manual" && !o.Has("client_id"):
		o.Errorf("registration manual has no client_id (write it)")
	case c.Registration == "dynamic", c.Registration == "client_metadata":
		for _, key := range clientKeys {
			if v, there := o.Find(key); there {
				v.Errorf("does not go with registration %s (write registration: manual, or leave it out)", c.Registration)
			}
		}
	}
	if v, there := o.Find("client_metadata_url"); there && (c.Registration == "manual" || c.Registration == "dynamic") {
		v.Errorf("does not go with registration %s (write registration: client_metadata)", c.Registration)
	}
	env, hasEnv := o.Find("client_secret_env_var")
	file, hasFile := o.Find("client_secret_file")
	if hasEnv && hasFile {
		file.Errorf("both client_secret_env_var and client_secret_file (keep one)")
	}
	if (hasEnv || hasFile) && !o.Has("client_id") {
		if !hasEnv {
			env = file
		}
		env.Errorf("a client secret without client_id (write it)")
	}
	v, there := o.Find("token_endpoint_auth_method")
	switch method := c.TokenEndpointAuthMethod; {
	case !there:
	case method == "private_key_jwt":
		v.Errorf("private_key_jwt goes with type client_credentials alone (want none, client_secret_basic or client_secret_post)")
	case strings.HasPrefix(method, "client_secret_") && !hasEnv && !hasFile && o.Has("client_id"):
		v.Errorf("%s has no client secret (write client_secret_env_var or client_secret_file)", method)
	}
}

func checkClientCredentials(o *document.Object, c *OAuth) {
	if !o.Has("client_id") {
		o.Errorf("type client_credentials has no client_id (write it)")
	}
	written := 0
	for _, key := range []string{"client_secret_env_var", "client_secret_file", "private_key_file"} {
		if o.Has(key) {
			written++
		}
	}
	if written != 1 {
		o.Errorf("type client_credentials has %d secrets (write one of client_secret_env_var, client_secret_file and private_key_file)", written)
	}
	v, there := o.Find("token_endpoint_auth_method")
	switch method := c.TokenEndpointAuthMethod; {
	case !there || method == "":
	case method == "none":
		v.Errorf("none does not go with type client_credentials (want client_secret_basic, client_secret_post or private_key_jwt)")
	case (method == "private_key_jwt") != o.Has("private_key_file"):
		v.Errorf("%s does not go with the secret that is given (leave it out)", method)
	}
}
