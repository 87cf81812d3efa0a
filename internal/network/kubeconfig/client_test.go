package kubeconfig_test

import (
	"crypto/tls"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/pki/pkitest"
)

// Replaced files of a client certificate are used after a rejection. While they are not a pair, the previous
// certificate stays in use.
func TestCertificateRotates(t *testing.T) {
	authority, refuse := pkitest.Authority(t, "ca"), ""
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user := r.TLS.PeerCertificates[0].Subject.CommonName
		if user == refuse {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprint(w, r.Proto+" "+user)
	}))
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pki.NewAuthorities(authority.Cert).Pool}
	s.StartTLS()
	defer s.Close()
	dir := t.TempDir()
	pkitest.Write(t, dir, "client", pkitest.Client(t, authority, "old"))
	config, err := kubeconfig.Find(kubeconfig.Options{Files: []string{write(t, dir, "config", fmt.Sprintf(`
current-context: c
clusters: [{name: c, cluster: {server: %s, certificate-authority-data: %s}}]
users: [{name: u, user: {client-certificate: client.crt, client-key: client.key}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
`, s.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))))}})
	if err != nil {
		t.Fatal(err)
	}
	client := config.Client()
	defer client.CloseIdleConnections()
	expect := func(when, want string) {
		t.Helper()
		if got := get(client, config.URL); got != "HTTP/2.0 "+want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	expect("at first", "old")
	key, err := os.ReadFile(dir + "/client.key")
	if err != nil {
		t.Fatal(err)
	}
	pkitest.Write(t, dir, "client", pkitest.Client(t, authority, "new"))
	expect("on the same connection", "old")
	next, err := os.ReadFile(dir + "/client.key")
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "client.key", string(key))
	refuse = "old"
	expect("the rejection", "old")
	expect("with the key of another certificate", "old")
	write(t, dir, "client.key", string(next))
	expect("with its key", "new")
}
