package authn

import (
	"net/http"

	"github.com/anykind/anykind/internal/request"
)

// WithoutCredentials returns an Authenticator that removes from a request, once its user is
// found, everything in its headers that says who a user is: nobody behind it can believe what
// was not checked. It knows the headers of front proxies that everybody knows; more are those
// that were chosen.
func WithoutCredentials(users Authenticator, more ...ProxyHeaders) Authenticator {
	return &withoutCredentials{users, append([]ProxyHeaders{StandardProxyHeaders()}, more...)}
}

type withoutCredentials struct {
	users   Authenticator
	headers []ProxyHeaders
}

func (w *withoutCredentials) Authenticate(r *http.Request) (*request.User, bool, error) {
	u, ok, err := w.users.Authenticate(r)
	if ok {
		r.Header.Del("Authorization")
		for i := range w.headers {
			w.headers[i].Remove(r.Header)
		}
	}
	return u, ok, err
}
