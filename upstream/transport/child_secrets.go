package transport

import (
	"strings"

	"github.com/mainstem-mcp/mainstem/config"
)

// minSecret is how long a value is at least that is taken for a secret. A shorter one
// would be found in half of what a server writes.
const minSecret = 6

// childSecrets are the values that a server was given under a name like TOKEN or
// --api-key. A server may repeat them on stderr, from where they must not get into the
// log. Other values stay readable: they are paths and settings.
func childSecrets(s *config.Server) []string {
	var secrets []string
	add := func(name, value string) {
		if len(value) >= minSecret && namesSecret(name) {
			secrets = append(secrets, value)
		}
	}
	for _, v := range s.Env {
		add(v.Name, v.Value.Reveal())
	}
	for i, arg := range s.Args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case !strings.HasPrefix(name, "-"):
		case joined:
			add(name, value)
		case i+1 < len(s.Args):
			add(name, s.Args[i+1])
		}
	}
	return secrets
}

func namesSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"token", "secret", "key", "passw", "credential", "auth"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}

func without(secrets []string, text string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "[redacted]")
	}
	return text
}
