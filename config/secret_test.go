package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	yaml "go.yaml.in/yaml/v4"

	"github.com/mainstem-mcp/mainstem/config"
)

func TestSecretNeverPrints(t *testing.T) {
	const hidden = "hunter2-hunter2"
	secret := config.NewSecret(hidden)
	type private struct{ s config.Secret } // fmt calls no methods on such a field
	values := []any{secret, &secret, []config.Secret{secret}, map[string]config.Secret{"k": secret},
		config.Header{Name: "X", Value: secret}, private{secret}, &private{secret},
		&config.Server{Headers: []config.Header{{Name: "X", Value: secret}}, Auth: config.Auth{Credential: secret}}}
	var out bytes.Buffer
	for _, v := range values {
		for _, verb := range "vsqxXdobcUeEfgGtTp" {
			fmt.Fprintf(&out, "%"+string(verb)+" %+"+string(verb)+" %#"+string(verb)+"\n", v, v, v)
		}
		fmt.Fprintln(&out, v)
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(encoded)
		if encoded, err = yaml.Marshal(v); err == nil {
			out.Write(encoded)
		}
		logger := zerolog.New(&out)
		logger.Log().Interface("v", v).Any("w", v).Str("s", fmt.Sprint(v)).Send()
		slog.New(slog.NewTextHandler(&out, nil)).Info("m", "v", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("m", "v", v)
	}
	zlog := zerolog.New(&out)
	zlog.Log().Stringer("v", secret).Send()
	fmt.Fprint(&out, fmt.Errorf("bad: %v", secret))
	for _, leak := range []string{hidden, fmt.Sprintf("%x", hidden), fmt.Sprintf("%X", hidden)} {
		if strings.Contains(out.String(), leak) {
			t.Errorf("printed:\n%s", out.String())
		}
	}
	if got := fmt.Sprintf("%s %v %+v %#v", secret, secret, secret, secret); got != strings.Repeat("[redacted] ", 3)+"[redacted]" {
		t.Errorf("got %q", got)
	}
	if secret.Reveal() != hidden || secret.IsZero() || !(config.Secret{}).IsZero() {
		t.Error("Reveal or IsZero is wrong")
	}
}
