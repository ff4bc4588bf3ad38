package config

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/mainstem-mcp/mainstem/config/document"
)

// tokenPrefixes are how well-known services begin their tokens.
var tokenPrefixes = []string{
	"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "sk_live_", "sk_test_", "rk_live_",
	"xoxb-", "xoxp-", "xoxa-", "xoxe-", "xoxs-", "xapp-", "AKIA", "ASIA", "AIza", "ya29.", "eyJ", "hf_", "npm_", "pypi-",
	"dop_v1_", "lin_api_", "ntn_", "secret_", "shpat_", "SG.", "figd_", "tvly-", "gsk_", "r8_", "dckr_pat_", "glsa_", "sntrys_",
}

// Names whose values are secrets by their meaning.
var (
	secretHeader   = regexp.MustCompile(`(?i)^(proxy-)?authorization$|^cookie$|(api|auth|access|private)-?(key|token)$|secret|password`)
	secretVariable = regexp.MustCompile(`(?i)(^|_)(TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_?KEY|PRIVATE_?KEY)$`)
	secretOption   = regexp.MustCompile(`(?i)^--?[a-z0-9-]*(token|secret|password|passwd|api-?key|access-?key)=.`)
	secretQuery    = regexp.MustCompile(`(?i)^(api[_-]?key|key|(access[_-]?|auth[_-]?)?token|secret|password|sig|signature)$`)
)

// Forms of credentials, wherever they stand: the value of an Authorization header, with
// or without its name, and a URL with a password.
var (
	authorization = regexp.MustCompile(`(?i)\b(proxy-)?authorization\s*[:=]\s*\S|^\s*(bearer|basic)\s+[a-z0-9._~+/=-]{6,}\s*$`)
	userInfo      = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^/?#\s@]*:[^/?#\s@]+@`)
)

// looksSecret reports whether raw, as written, holds a token that begins like those
// of a well-known service.
func looksSecret(raw string) bool {
	const shortest = 16 // of what follows the prefix
	for _, word := range strings.FieldsFunc(raw, func(r rune) bool { return strings.ContainsRune(" \t\r\n=:,;&?/'\"", r) }) {
		for _, prefix := range tokenPrefixes {
			if strings.HasPrefix(word, prefix) && len(word) >= len(prefix)+shortest && !strings.Contains(word, "${") {
				return true
			}
		}
	}
	return false
}

// literal warns that v holds a secret as such.
func (l *loader) literal(v document.Value) {
	v.Warnf(`looks like a literal secret (write "${VAR}" and set that environment variable)`)
	l.literals[v.File()] = true
}

// checkLiteral looks at a value whose name may say that it is secret.
func (l *loader) checkLiteral(v document.Value, raw string, named bool) {
	formed := named && strings.TrimSpace(raw) != "" || authorization.MatchString(raw) || userInfo.MatchString(raw)
	if formed && !strings.Contains(raw, "${") || looksSecret(raw) {
		l.literal(v)
	}
}

// checkLiteralURL looks at the user info and the query of an address as written.
func (l *loader) checkLiteralURL(v document.Value, raw string) {
	_, rest, _ := strings.Cut(raw, "://")
	path, query, _ := strings.Cut(rest, "?")
	authority, _, _ := strings.Cut(path, "/")
	user, _, hasUser := cutLast(authority, "@")
	secret := hasUser && !strings.Contains(user, "${") || looksSecret(raw)
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, _ = url.QueryUnescape(name)
		secret = secret || secretQuery.MatchString(name) && value != "" && !strings.Contains(value, "${")
	}
	if secret {
		l.literal(v)
	}
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
