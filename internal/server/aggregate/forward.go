package aggregate

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/object/request"
)

const (
	// discoveryTime is how long a Backend may take to say what it serves.
	discoveryTime = 5 * time.Second
	// maxRequests is how many requests, watches and the like apart, one Backend is sent at a
	// time. While it answers they take no room of the server's own requests.
	maxRequests = 400
	// maxHops is how many servers a request may have come through. One that leads back to
	// itself would go round for ever.
	maxHops = 16
)

// errSlow is why a request for discovery was given up, which has time left.
var errSlow = errors.New("discovery took too long")

// A forwarding sends requests to the Backend of a Service.
type forwarding struct {
	aggregator *Aggregator
	service    *Service
}

// Forward returns what sends requests to the Backend of a Service, whatever their paths.
func (a *Aggregator) Forward(s *Service) http.Handler { return &forwarding{a, s} }

// ServeHTTP implements http.Handler. What it answers itself is text, as in Kubernetes.
func (f *forwarding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user := request.UserFrom(r.Context())
	if code, why := f.refusal(r, user); code != 0 {
		http.Error(w, why, code)
		return
	}
	b := f.service.Backend
	leave, ok := b.enter(r)
	if !ok {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
		return
	}
	defer leave()
	ways, err := b.transport()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
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
		ctx, cancel := context.WithTimeoutCause(r.Context(), discoveryTime, errSlow)
		defer cancel()
		r = r.WithContext(ctx)
	}
	proxy.Server{
		To: to, Transport: ways.usual, Upgrades: ways.upgrades,
		Tell: func(h http.Header) { f.aggregator.tell(h, user) },
	}.ServeHTTP(w, r)
}

// refusal returns why a request is not sent to the Backend, with a code; 0 if it is.
func (f *forwarding) refusal(r *http.Request, user *request.User) (code int, why string) {
	switch {
	case !f.service.Available:
		return http.StatusServiceUnavailable, "service unavailable"
	case user == nil:
		return http.StatusInternalServerError, "missing user"
	case !within(r):
		return http.StatusNotFound, "404 page not found"
	case strings.Count(strings.Join(r.Header["X-Forwarded-For"], ","), ",") >= maxHops-1:
		return http.StatusLoopDetected, "the request came through too many servers"
	default:
		return 0, ""
	}
}

// within reports whether a path is one of the Backend, however it is read: who may ask was
// decided by the path as it is.
func within(r *http.Request) bool {
	for part := range strings.SplitSeq(r.URL.Path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return true
}

// enter takes a place among the requests to a Backend, and leaves that among those of the
// server. A request that may last as long as it likes has none.
func (b *Backend) enter(r *http.Request) (leave func(), ok bool) {
	q := request.From(r.Context())
	if q == nil || q.Place == nil {
		return func() {}, true
	}
	if b.pool.inside.Add(1) > maxRequests {
		b.pool.inside.Add(-1)
		return nil, false
	}
	q.Place.Leave()
	return func() { b.pool.inside.Add(-1) }, true
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
