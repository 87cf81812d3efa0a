package trouble

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/wire"
)

// A client certificate expires while a connection is open: later requests are rejected, also on the
// same connection, and an open watch continues.
func TestClientCertificateExpires(t *testing.T) {
	a := newAuthority(t)
	p := start(t, "--client-ca-file="+a.path("ca.crt"))
	admin := clients(p)
	until := time.Now().Add(6 * time.Second)
	cert := a.sign(t, "client", pkix.Name{CommonName: "eve", Organization: []string{"system:masters"}}, until)
	var said [2]string
	for i, c := range admin {
		mine, err := wire.NewClient("https://"+c.Host(), &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*cert.TLS()}}, "")
		if err != nil {
			t.Fatal(err)
		}
		defer mine.Close()
		anonymous := []wire.Field{{Name: "Authorization", Value: ""}}
		ask := func() string {
			r := mine.Do(t.Context(), wire.Step{Method: "GET", Path: collection, Header: anonymous})
			return fmt.Sprintf("%d %s", r.Code, r.Failed)
		}
		said[i] = "before: " + ask()
		watch := mine.Do(t.Context(), wire.Step{Method: "GET", Path: collection + "?watch=true&labelSelector=expired", Header: anonymous, Watch: true})
		if watch.Stream == nil {
			t.Fatalf("%s: no watch: %d %s", names[i], watch.Code, watch.Failed)
		}
		defer watch.Stream.Close()
		<-time.After(time.Until(until.Add(1500 * time.Millisecond)))
		said[i] += "; after: " + ask()
		r := c.Do(t.Context(), wire.Step{Method: "POST", Path: collection, Header: asJSON, Body: []byte(`{"metadata":{"name":"expired","labels":{"expired":"yes"}}}`)})
		if r.Code != http.StatusCreated {
			t.Fatalf("%s: %d %s", names[i], r.Code, r.Body)
		}
		eventually(t, names[i]+": the watch goes on", 10*time.Second, func() bool { n, _ := watch.Stream.Len(); return n == 1 })
		until = time.Now() // the second one has expired before its request
		if i == 0 {
			until = time.Now().Add(6 * time.Second)
			cert = a.sign(t, "client", pkix.Name{CommonName: "eve", Organization: []string{"system:masters"}}, until)
		}
	}
	if said[0] != said[1] {
		t.Errorf("%s: %s\n%s: %s", names[0], said[0], names[1], said[1])
	}
	if want := "before: 200 ; after: 401 "; said[1] != want {
		t.Errorf("%s: %q, want %q", names[1], said[1], want)
	}
}

// A replaced serving certificate on the disk is used without a restart. An expired one is still
// presented: clients decide about trust.
func TestServingCertificateExpires(t *testing.T) {
	a := newAuthority(t)
	a.sign(t, "server", pkix.Name{CommonName: "server"}, time.Now().Add(4*time.Second))
	expires := time.Now().Add(4 * time.Second)
	p := start(t, "--tls-cert-file="+a.path("server.crt"), "--tls-private-key-file="+a.path("server.key"))
	roots := x509.NewCertPool()
	roots.AddCert(a.Cert)
	<-time.After(time.Until(expires.Add(time.Second)))
	for i, c := range clients(p) {
		if _, err := tls.Dial("tcp", c.Host(), &tls.Config{RootCAs: roots}); err == nil {
			t.Errorf("%s: a client trusts a certificate that has expired", names[i])
		}
		if r := c.Do(t.Context(), wire.Step{Method: "GET", Path: "/version"}); r.Code != http.StatusOK {
			t.Errorf("%s: who does not care gets %d %s", names[i], r.Code, r.Failed)
		}
	}
	next := a.sign(t, "server", pkix.Name{CommonName: "server"}, time.Now().Add(time.Hour))
	for i, c := range clients(p) {
		eventually(t, names[i]+" shows the new certificate", 90*time.Second, func() bool {
			conn, err := tls.Dial("tcp", c.Host(), &tls.Config{RootCAs: roots})
			if err != nil {
				return false
			}
			defer conn.Close()
			return conn.ConnectionState().PeerCertificates[0].Equal(next.Cert)
		})
	}
}
