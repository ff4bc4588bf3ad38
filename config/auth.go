package config

import "strings"

// auth reads the mapping auth of a server.
func (r *serverReader) auth(v value) {
	o, ok := v.object()
	if !ok {
		return
	}
	auth := &r.s.Auth
	kind, there := o.get("type")
	if !there {
		v.errorf("has no type (want none, header, oauth or client_credentials)")
	} else if s, ok := kind.oneOf(AuthNone, AuthHeader, AuthOAuth, AuthClientCredentials); ok {
		auth.Type = s
	}
	r.identify("auth", auth.Type)
	r.headerAuth(o, auth)
	oauth := &OAuth{Registration: "auto"}
	r.client(o, oauth)
	r.flow(o, oauth)
	if there && auth.Type == kind.scalar { // a legal one
		o.only(authKeys(auth.Type)...)
	}
	switch auth.Type {
	case AuthOAuth:
		auth.OAuth = oauth
		checkOAuth(o, oauth)
	case AuthClientCredentials:
		auth.OAuth = oauth
		checkClientCredentials(o, oauth)
	}
	o.close(map[string]string{
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

// only reports the known keys, type aside, that are not among those that go with
// the type.
func (o *object) only(keys ...string) {
	goes := map[string]bool{"type": true}
	for _, key := range keys {
		goes[key] = true
	}
	kind, _ := o.find("type")
	for _, e := range o.entries {
		for _, known := range o.known {
			if e.key == known && !goes[known] {
				e.errorf("does not go with type %s (leave it out)", kind.scalar)
			}
		}
	}
}

// headerAuth reads the keys of type header.
func (r *serverReader) headerAuth(o *object, auth *Auth) {
	isHeader := auth.Type == AuthHeader
	if isHeader {
		auth.Header, auth.Scheme = "Authorization", "Bearer"
	}
	scheme, hasScheme := o.get("scheme")
	if hasScheme {
		if s, ok := scheme.text(); ok {
			r.scheme(scheme, s, auth)
		}
	}
	if v, there := o.get("header"); there {
		if s, ok := v.filled(); ok && !isToken(s) {
			v.errorf("no legal name of a header (want letters, digits and any of !#$%%&'*+-.^_`|~)")
		} else if ok && isHeader {
			auth.Header = s
			if !hasScheme && !strings.EqualFold(s, "Authorization") {
				v.warnf("sends %q (write scheme: \"\" if the server wants the bare value, scheme: Bearer if not)", s+": Bearer …")
			}
		}
	}
	env, hasEnv := o.get("credential_env_var")
	file, hasFile := o.get("credential_file")
	if !isHeader {
		return
	}
	r.identify("auth.header", auth.Header+" "+auth.Scheme)
	switch {
	case hasEnv && hasFile:
		file.errorf("both credential_env_var and credential_file (keep one)")
	case hasEnv:
		r.credentialEnv(env)
	case hasFile:
		r.credentialFile(file)
	default:
		o.errorf("server %q has no credential (write credential_env_var or credential_file)", r.s.Name)
	}
}

func (r *serverReader) scheme(v value, s string, auth *Auth) {
	s, legal := trimHeader(s)
	if !legal {
		v.errorf("server %q: the scheme holds a control or non-ASCII character (want printable ASCII)", r.s.Name)
		return
	}
	if looksSecret(s) {
		r.literal(v)
	}
	auth.Scheme = s
}

// client reads how we identify ourselves to an authorization server.
func (r *serverReader) client(o *object, to *OAuth) {
	o.setOneOf("registration", &to.Registration, "auto", "client_metadata", "dynamic", "manual")
	if v, there := o.get("client_id"); there {
		to.ClientID, _ = v.filled()
	}
	if v, there := o.get("client_secret_env_var"); there {
		if name, ok := variableName(v); ok {
			to.ClientSecretEnv = name
			r.clientSecret(v, name, to)
		}
	}
	if v, there := o.get("client_secret_file"); there {
		to.ClientSecretFile = r.secretFile(v)
	}
	if v, there := o.get("private_key_file"); there {
		to.PrivateKeyFile = r.secretFile(v)
	}
	if v, there := o.get("client_metadata_url"); there {
		if raw, ok := v.filled(); ok {
			if u, ok := checkURL(v, raw); ok {
				to.ClientMetadataURL = raw
				if u.Scheme != "https" || u.Path == "" || u.Path == "/" {
					v.errorf("not the address of a document (want https://HOST/PATH)")
				}
			}
		}
	}
	o.setOneOf("token_endpoint_auth_method", &to.TokenEndpointAuthMethod,
		"none", "client_secret_basic", "client_secret_post", "private_key_jwt")
	for _, fact := range []string{to.Registration, to.ClientID, to.ClientSecretEnv, to.ClientSecretFile, to.PrivateKeyFile,
		to.ClientMetadataURL, to.TokenEndpointAuthMethod} {
		r.identify("auth.client", fact)
	}
}

func (r *serverReader) clientSecret(v value, name string, to *OAuth) {
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

func (r *serverReader) secretFile(v value) string {
	name, ok := r.x.file(v)
	if ok {
		checkSecretFile(v, name)
	}
	return name
}

// flow reads what is asked of an authorization server.
func (r *serverReader) flow(o *object, to *OAuth) {
	if v, there := o.get("scopes"); there {
		items, _ := v.texts()
		for i, s := range items {
			if strings.ContainsAny(s, " \t\r\n\"\\") {
				v.errorf("scope %d holds white space, a quote or a backslash (write one scope an item)", i+1)
			}
			r.identify("auth.scope", s)
		}
		to.Scopes = items
	}
	if v, there := o.get("authorization_params"); there {
		to.AuthorizationParams = r.params(v)
	}
	if v, there := o.get("token_params"); there {
		to.TokenParams = r.params(v)
	}
	o.setBool("require_refresh_token", &to.RequireRefreshToken)
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

func (r *serverReader) params(v value) []Param {
	entries, _ := v.entries()
	var out []Param
	for _, e := range entries {
		s, ok := e.text()
		switch {
		case !ok:
			continue
		case e.key == "":
			e.errorf("a parameter without a name")
			continue
		case strings.EqualFold(e.key, "scope"):
			e.errorf("set by the flow itself (write scopes)")
		case isReserved(e.key):
			e.errorf("set by the flow itself (leave it out)")
		}
		r.checkLiteral(e.value, s, false)
		r.identify("auth.param", v.path+" "+e.key+" "+s)
		out = append(out, Param{e.key, s})
	}
	return out
}

func checkOAuth(o *object, c *OAuth) {
	clientKeys := []string{"client_id", "client_secret_env_var", "client_secret_file"}
	switch {
	case c.Registration == "manual" && !o.has("client_id"):
		o.errorf("registration manual has no client_id (write it)")
	case c.Registration == "dynamic", c.Registration == "client_metadata":
		for _, key := range clientKeys {
			if v, there := o.find(key); there {
				v.errorf("does not go with registration %s (write registration: manual, or leave it out)", c.Registration)
			}
		}
	}
	if v, there := o.find("client_metadata_url"); there && (c.Registration == "manual" || c.Registration == "dynamic") {
		v.errorf("does not go with registration %s (write registration: client_metadata)", c.Registration)
	}
	env, hasEnv := o.find("client_secret_env_var")
	file, hasFile := o.find("client_secret_file")
	if hasEnv && hasFile {
		file.errorf("both client_secret_env_var and client_secret_file (keep one)")
	}
	if (hasEnv || hasFile) && !o.has("client_id") {
		if !hasEnv {
			env = file
		}
		env.errorf("a client secret without client_id (write it)")
	}
	v, there := o.find("token_endpoint_auth_method")
	switch method := c.TokenEndpointAuthMethod; {
	case !there:
	case method == "private_key_jwt":
		v.errorf("private_key_jwt goes with type client_credentials alone (want none, client_secret_basic or client_secret_post)")
	case strings.HasPrefix(method, "client_secret_") && !hasEnv && !hasFile && o.has("client_id"):
		v.errorf("%s has no client secret (write client_secret_env_var or client_secret_file)", method)
	}
}

func checkClientCredentials(o *object, c *OAuth) {
	if !o.has("client_id") {
		o.errorf("type client_credentials has no client_id (write it)")
	}
	written := 0
	for _, key := range []string{"client_secret_env_var", "client_secret_file", "private_key_file"} {
		if o.has(key) {
			written++
		}
	}
	if written != 1 {
		o.errorf("type client_credentials has %d secrets (write one of client_secret_env_var, client_secret_file and private_key_file)", written)
	}
	v, there := o.find("token_endpoint_auth_method")
	switch method := c.TokenEndpointAuthMethod; {
	case !there || method == "":
	case method == "none":
		v.errorf("none does not go with type client_credentials (want client_secret_basic, client_secret_post or private_key_jwt)")
	case (method == "private_key_jwt") != o.has("private_key_file"):
		v.errorf("%s does not go with the secret that is given (leave it out)", method)
	}
}
