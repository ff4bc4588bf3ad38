package config

import "fmt"

const redacted = "[redacted]"

// A Secret is a value that must never be shown: it prints as [redacted] in every
// format and encoding. The text lies behind a pointer because fmt prints plain
// strings, whatever their methods, when they stand in unexported fields or meet a
// verb that does not suit them.
type Secret struct{ text *string }

// NewSecret hides text.
func NewSecret(text string) Secret { return Secret{&text} }

// Reveal returns the hidden text: for the wire and the environment of a child only.
func (s Secret) Reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

// IsZero reports whether nothing is hidden.
func (s Secret) IsZero() bool { return s.Reveal() == "" }

// Format implements fmt.Formatter for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// String returns [redacted].
func (s Secret) String() string { return redacted }

// MarshalText encodes [redacted]; JSON, YAML, slog and zerolog go through it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
