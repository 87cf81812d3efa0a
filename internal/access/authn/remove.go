package authn

import (
	"net/http"

	"github.com/anykind/anykind/internal/object/request"
)

// WithoutCredentials returns an Authenticator that removes all headers with credentials or
// identities from an authenticated request, so that no later handler trusts them. It removes the
// standard headers of front proxies, and those of more.
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
