package server

import (
	"cmp"
	"crypto/tls"
	"net/http"
)

// defaultStreams is the default of Protocol.Streams.
const defaultStreams = 100

// Protocol restricts TLS and HTTP. The zero value is TLS 1.2 or later and HTTP/2 or HTTP/1.1, with the ciphers and
// curves of crypto/tls.
type Protocol struct {
	MinVersion   uint16        // of TLS
	CipherSuites []uint16      // of TLS 1.2 and earlier; TLS 1.3 has a fixed set
	Curves       []tls.CurveID // key exchanges, in any order
	HTTP1        bool          // without HTTP/2
	Streams      int           // of an HTTP/2 connection
}

// secure adds the restrictions of TLS to a configuration.
func (p Protocol) secure(c *tls.Config) {
	c.MinVersion = cmp.Or(p.MinVersion, max(c.MinVersion, tls.VersionTLS12))
	c.CipherSuites, c.CurvePreferences = p.CipherSuites, p.Curves
	c.NextProtos = []string{"h2", "http/1.1"}
	if p.HTTP1 {
		c.NextProtos = c.NextProtos[1:]
	}
}

// versions returns the versions of HTTP.
func (p Protocol) versions() *http.Protocols {
	var versions http.Protocols
	versions.SetHTTP1(true)
	versions.SetHTTP2(!p.HTTP1)
	return &versions
}
