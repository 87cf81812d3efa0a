package kubelet

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
)

// After a change of the certificate, old connections are no longer used.
func TestRenewedCertificate(t *testing.T) {
	asked := make(chan []byte, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- r.TLS.PeerCertificates[0].Raw
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	o := Options{Dial: new(net.Dialer).DialContext, Timeout: Timeout}
	var own *tls.Certificate
	kubelets := &transport{o: o, config: &tls.Config{InsecureSkipVerify: true}, own: func() *tls.Certificate { return own }}
	for range 2 {
		p, err := pki.Open("", nil)
		if err != nil {
			t.Fatal(err)
		}
		pair, err := tls.X509KeyPair(p.Admin().CertPEM(), p.Admin().KeyPEM())
		if err != nil {
			t.Fatal(err)
		}
		own = &pair
		for range 2 {
			response, err := (&http.Client{Transport: kubelets}).Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
			if got := <-asked; string(got) != string(pair.Certificate[0]) {
				t.Error("it came with another certificate")
			}
		}
	}
}
