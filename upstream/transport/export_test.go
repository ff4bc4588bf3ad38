package transport

import (
	"net/http"
	"net/http/httptest"

	"github.com/mainstem-mcp/mainstem/upstream/wire"
)

// Trust makes t accept the certificate of a test server. Nothing was sent before.
func (t *HTTP) Trust(s *httptest.Server) {
	t.wire = wire.New(t.to, t.o.Policy.Operator(), s.Client().Transport.(*http.Transport).TLSClientConfig)
}
