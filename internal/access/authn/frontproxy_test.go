package authn

import (
	"crypto/x509"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/request"
)

// proxied returns a request on a connection with the client certificate by.
func proxied(by *pki.Pair, headers ...string) *http.Request {
	r := get(headers...)
	if by != nil {
		r.TLS = withCertificates(by.Cert).TLS
	}
	return r
}

// Only a trusted proxy sets the user, and only by the configured headers. All proxy headers are
// removed from the request.
func TestFrontProxy(t *testing.T) {
	clients, proxies := issue(t, nil, "clients", isCA), issue(t, nil, "proxies", isCA)
	proxy, eve := issue(t, proxies, "front-proxy", forClient), issue(t, clients, "eve", forClient)
	headers := ProxyHeaders{
		Username: []string{"X-Remote-User", "X-Other-User"}, UID: []string{"X-Remote-Uid"},
		Group: []string{"X-Remote-Group", "X-Other-Group"}, ExtraPrefix: []string{"x-remote-extra-", "X-Other-Extra-"},
	}
	pool := x509.NewCertPool()
	pool.AddCert(proxies.Cert)
	roots := func() *x509.CertPool { return pool }
	users := func(names ...string) Authenticator {
		said := func() Proxies { return Proxies{names, headers} }
		return WithoutCredentials(OrAnonymous(Chain{NewFrontProxy(roots, said), trusting(clients, nil)}, Anonymous{Enabled: true}), said)
	}
	named := users("front-proxy", "other")
	user := func(name, uid string, groups ...string) *request.User {
		return &request.User{Name: name, UID: uid, Groups: append(groups, request.Authenticated)}
	}
	plain := []string{"X-Remote-User", "bob", "X-Remote-Group", "devs"}
	for _, tt := range []struct {
		name string
		by   Authenticator
		r    *http.Request
		want *request.User // nil is an error
	}{
		{"by the proxy", named, proxied(proxy, plain...), user("bob", "", "devs")},
		{"any name", users(), proxied(proxy, plain...), user("bob", "", "devs")},
		{"another name", users("other"), proxied(proxy, plain...), nil},
		{"the name in another case", users("Front-Proxy"), proxied(proxy, plain...), nil},
		{"all that there is", named, proxied(proxy, "X-Remote-User", "bob", "X-Remote-Uid", "7", "X-Remote-Group", "b", "X-Other-Group", "a",
			"X-Remote-Group", "", "X-Remote-Extra-Acme.com%2fScope", "1", "X-Remote-Extra-Bad%zz", "2", "X-Other-Extra-Acme.com%2Fscope", "3"),
			&request.User{Name: "bob", UID: "7", Groups: []string{"b", "a", request.Authenticated}, Extra: map[string][]string{"acme.com/scope": {"1", "3"}, "bad%zz": {"2"}}}},
		{"the second header", named, proxied(proxy, "X-Remote-User", "", "X-Other-User", "carol"), user("carol", "")},
		{"masters, for a proxy may name them", named, proxied(proxy, "X-Remote-User", "bob", "X-Remote-Group", request.Masters), user("bob", "", request.Masters)},
		{"by the proxy without a user", named, proxied(proxy, "X-Remote-Group", request.Masters), nil},
		{"by the proxy for itself", named, proxied(proxy), nil},
		{"spoofed by a client", named, proxied(eve, plain...), user("eve", "")},
		{"spoofed by a client, any name", users(), proxied(eve, plain...), user("eve", "")},
		{"spoofed by an anonymous client", named, proxied(nil, plain...), anonymous},
		{"spoofed extras", named, proxied(eve, "x-remote-extra-scopes", "all", "X-Remote-Uid", "0"), user("eve", "")},
		{"by a server certificate of the authority", named, proxied(issue(t, proxies, "front-proxy", func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), plain...), nil},
		{"by an authority of the same name", named, proxied(issue(t, issue(t, nil, "proxies", isCA), "front-proxy", forClient), plain...), nil},
	} {
		for _, round := range []string{"first", "second"} {
			r := tt.r.Clone(t.Context())
			u, ok, err := tt.by.Authenticate(r)
			if tt.want == nil {
				if err == nil || ok {
					t.Errorf("%s, %s time: %+v, want an error", tt.name, round, u)
				}
				continue
			}
			if err != nil || !ok {
				t.Errorf("%s, %s time: %v", tt.name, round, err)
				continue
			}
			got := *u
			if got.Name == "eve" {
				got.Extra = nil // has the fingerprint of the certificate
			}
			if !reflect.DeepEqual(&got, tt.want) {
				t.Errorf("%s, %s time: %+v, want %+v", tt.name, round, got, tt.want)
			}
			for _, name := range slices.Sorted(maps.Keys(r.Header)) {
				if strings.HasPrefix(strings.ToLower(name), "x-") {
					t.Errorf("%s: %s is still in the request", tt.name, name)
				}
			}
		}
	}
}

// Headers that are not configured are ignored, and other headers stay.
func TestOtherHeadersStay(t *testing.T) {
	r := get("X-Remote-Users", "a", "X-Remote", "b", "Accept", "c", "X-Remote-User", "d", "Authorization", "Basic e")
	if _, ok, err := WithoutCredentials(OrAnonymous(Chain{}, Anonymous{Enabled: true})).Authenticate(r); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if got := slices.Sorted(maps.Keys(r.Header)); !slices.Equal(got, []string{"Accept", "X-Remote", "X-Remote-Users"}) {
		t.Errorf("left are %q", got)
	}
}
