package aggregate

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/authn"
	"github.com/anykind/anykind/internal/proxy"
	"github.com/anykind/anykind/internal/request"
)

// discoveryTime is how long a Backend may take to say what it serves.
const discoveryTime = 5 * time.Second

// A forwarding sends requests to the Backend of a Service.
type forwarding struct {
	aggregator *Aggregator
	service    *Service
}

// ServeHTTP implements http.Handler. What it answers itself is text, as in Kubernetes.
func (f *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !f.service.Available {
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	b := f.service.Backend
	ways, err := b.transport()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	user := request.UserFrom(r.Context())
	if user == nil {
		http.Error(w, "missing user", http.StatusInternalServerError)
		return
	}
	to, err := b.Resolve(r.Context())
	if err != nil {
		f.aggregator.options.Log.Warn("a service cannot be resolved", "namespace", b.Service.Namespace, "service", b.Service.Name, "error", err)
		http.Error(w, "service unavailable", http.StatusServiceUnavailable)
		return
	}
	to.Path, to.RawQuery = r.URL.Path, r.URL.Query().Encode()
	if isDiscovery(r) {
		ctx, cancel := context.WithTimeout(r.Context(), discoveryTime)
		defer cancel()
		r = r.WithContext(ctx)
	}
	proxy.Server{
		To: to, Transport: ways.usual, Upgrades: ways.upgrades,
		Tell: func(h http.Header) { f.aggregator.tell(h, user) },
	}.ServeHTTP(w, r)
}

// isDiscovery reports whether a request asks what a version has.
func isDiscovery(r *http.Request) bool {
	info := request.InfoOf(r)
	return !info.IsResource && strings.Count(strings.Trim(info.Path, "/"), "/") == 2
}

// tell says in headers who asks, and makes sure that nobody else has said it.
func (a *Aggregator) tell(h http.Header, user *request.User) {
	standard := authn.StandardProxyHeaders()
	standard.Remove(h)
	a.options.Headers.Remove(h)
	h.Set("X-Remote-User", user.Name)
	if user.UID != "" {
		h.Set("X-Remote-Uid", user.UID)
	}
	for _, group := range user.Groups {
		h.Add("X-Remote-Group", group)
	}
	for key, values := range user.Extra {
		for _, value := range values {
			h.Add("X-Remote-Extra-"+escape(key), value)
		}
	}
}
