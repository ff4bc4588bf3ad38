package transport

import (
	"net/http"
	"net/http/httptest"
)

// Trust makes t accept the certificate of a test server.
func (t *HTTP) Trust(s *httptest.Server) {
	if w, ok := t.wire.(*stdWire); ok {
		w.transport.TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	}
}
