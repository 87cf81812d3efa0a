package server

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/network/pki/pkitest"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
)

// A request whose answer is cut off counts as aborted.
func TestAbortsAreCounted(t *testing.T) {
	catalog := &resource.Catalog{}
	catalog.Swap(kinds())
	o := everyone(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	o.Catalog = catalog
	s := New(o)
	for range 2 {
		func() {
			defer func() { _ = recover() }()
			ask(s, "GET", "/api/v1/namespaces/a/pods", "bob")
		}()
	}
	got := counts(t, s, "apiserver_request_aborts_total")
	if want := `{group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 2`; !slices.Equal(got, []string{want}) {
		t.Errorf("%s, want %s", got, want)
	}
}

// Bodies count by the verb of the request. A body that no handler has read does not count.
func TestBodySizes(t *testing.T) {
	catalog := &resource.Catalog{}
	catalog.Swap(kinds())
	o := everyone(func(_ http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("unread") {
			request.From(r.Context()).ReadBody(100)
		}
	})
	o.Catalog = catalog
	s := New(o)
	const all, one = "/api/v1/namespaces/a/pods", "/api/v1/namespaces/a/pods/x"
	for _, r := range [][2]string{{"POST", all}, {"PUT", one}, {"PUT", one + "/status"}, {"PATCH", one}, {"DELETE", one}, {"DELETE", all}, {"GET", one}, {"POST", all + "?unread"}} {
		ask(s, r[0], r[1], "bob")
	}
	var want []string
	for _, verb := range []string{"create} 100", "delete} 100", "delete_collection} 100", "patch} 100", "update} 200"} {
		want = append(want, fmt.Sprintf(`{group="",resource="pods",verb="%s`, strings.Replace(verb, "}", `"}`, 1)))
	}
	if got := counts(t, s, "apiserver_request_body_size_bytes_sum"); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A client that does not trust the server ends the handshake.
func TestHandshakeErrorsAreCounted(t *testing.T) {
	pair := pkitest.Sign(t, nil, x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	o := everyone(nothing)
	o.TLS = &tls.Config{Certificates: []tls.Certificate{*pair.TLS()}}
	s := New(o)
	if _, err := tls.Dial("tcp", listening(t, s), &tls.Config{RootCAs: x509.NewCertPool()}); err == nil {
		t.Fatal("the client trusts an unknown certificate")
	}
	const want = "\napiserver_tls_handshake_errors_total 1\n"
	for until := time.Now().Add(10 * time.Second); ; {
		if strings.Contains(ask(s, "GET", "/metrics", "root").Body.String(), want) {
			return
		}
		if time.Now().After(until) {
			t.Fatal("the error is not counted")
		}
	}
}
