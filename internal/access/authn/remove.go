package authn

import (
	"net/http"

	"github.com/anykind/anykind/internal/object/request"
)

// WithoutCredentials returns an Authenticator that removes from a request, once its user is
// found, everything in its headers that says who a user is: nobody behind it can believe what
// was not checked. It knows the headers of front proxies that everybody knows; more say which
// were chosen.
func WithoutCredentials(users Authenticator, more ...func() Proxies) Authenticator {
	return &withoutCredentials{users, StandardProxyHeaders(), more}
}

type withoutCredentials struct {
	users    Authenticator
	standard ProxyHeaders
	more     []func() Proxies
}

func (w *withoutCredentials) Authenticate(r *http.Request) (*request.User, bool, error) {
	u, ok, err := w.users.Authenticate(r)
	if ok {
		r.Header.Del("Authorization")
		w.standard.Remove(r.Header)
		for _, said := range w.more {
			headers := said().Headers
			headers.Remove(r.Header)
		}
	}
	return u, ok, err
}
