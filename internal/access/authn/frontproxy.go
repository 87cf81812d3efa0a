package authn

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/object/request"
)

// ProxyHeaders are the names of the headers in which a front proxy sends the user.
type ProxyHeaders struct {
	Username, UID, Group []string
	ExtraPrefix          []string
}

// StandardProxyHeaders returns the usual X-Remote names.
func StandardProxyHeaders() ProxyHeaders {
	return ProxyHeaders{
		Username: []string{"X-Remote-User"}, UID: []string{"X-Remote-Uid"},
		Group: []string{"X-Remote-Group"}, ExtraPrefix: []string{"X-Remote-Extra-"},
	}
}

// Remove removes the headers, so that no later handler trusts them.
func (p *ProxyHeaders) Remove(h http.Header) {
	for _, names := range [][]string{p.Username, p.UID, p.Group} {
		for _, name := range names {
			h.Del(name)
		}
	}
	for name := range h {
		if _, ok := p.extra(name); ok {
			delete(h, name) // not by its canonical name: it may have none
		}
	}
}

// extra returns the key of the user's extra in the name of a header.
func (p *ProxyHeaders) extra(name string) (string, bool) {
	for _, prefix := range p.ExtraPrefix {
		if key, ok := cutPrefixFold(name, prefix); ok {
			return key, true
		}
	}
	return "", false
}

func cutPrefixFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return "", false
	}
	return s[len(prefix):], true
}

// Proxies restricts the trusted front proxies and names their headers.
type Proxies struct {
	AllowedNames []string // common names of their certificates; empty allows all
	Headers      ProxyHeaders
}

// A FrontProxy authenticates by the headers of a proxy. A client certificate identifies the proxy.
type FrontProxy struct {
	proxies  trust
	settings func() Proxies
}

// NewFrontProxy returns a FrontProxy that trusts proxies with a client certificate of the CAs that
// roots returns and a name that settings allows. roots returns another pool after every change of the
// names.
func NewFrontProxy(roots func() *x509.CertPool, settings func() Proxies) *FrontProxy {
	allowed := func(cert *x509.Certificate) (*request.User, error) {
		names, name := settings().AllowedNames, cert.Subject.CommonName
		if len(names) > 0 && !slices.Contains(names, name) {
			return nil, fmt.Errorf("x509: subject with cn=%s is not in the allowed list", name)
		}
		return &request.User{Name: name}, nil
	}
	return &FrontProxy{newTrust(roots, allowed), settings}
}

// Authenticate implements Authenticator. It reads the headers only from a trusted proxy.
func (f *FrontProxy) Authenticate(r *http.Request) (*request.User, bool, error) {
	proxy, err := f.proxies.of(r)
	if proxy == nil || err != nil {
		return nil, false, err
	}
	headers := f.settings().Headers
	name := first(r.Header, headers.Username)
	if name == "" {
		return nil, false, nil
	}
	u := &request.User{Name: name, UID: first(r.Header, headers.UID), Groups: all(r.Header, headers.Group)}
	for _, prefix := range headers.ExtraPrefix {
		for header, values := range r.Header {
			if key, ok := cutPrefixFold(header, prefix); ok {
				if u.Extra == nil {
					u.Extra = map[string][]string{}
				}
				key = unescaped(strings.ToLower(key))
				u.Extra[key] = append(u.Extra[key], values...)
			}
		}
	}
	return u, true, nil
}

// first returns the first value that is not empty.
func first(h http.Header, names []string) string {
	for _, name := range names {
		if value := h.Get(name); value != "" {
			return value
		}
	}
	return ""
}

// all returns the values that are not empty.
func all(h http.Header, names []string) []string {
	var out []string
	for _, name := range names {
		for _, value := range h.Values(name) {
			if value != "" {
				out = append(out, value)
			}
		}
	}
	return out
}

// unescaped decodes a percent-encoded key. An invalid encoding leaves the key unchanged.
func unescaped(key string) string {
	if out, err := url.PathUnescape(key); err == nil {
		return out
	}
	return key
}
