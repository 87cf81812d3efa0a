package aggregate

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/network/proxy"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/span"
)

const (
	// discoveryTime limits a discovery request to a Backend.
	discoveryTime = 5 * time.Second
	// maxRequests limits the requests in flight to one Backend, except long-running ones.
	// Meanwhile they do not count against the limit of this server.
	maxRequests = 400
	// maxHops limits the proxies that a request has passed, which stops a loop.
	maxHops = 16
)

// errSlow is the cause of a discovery request that exceeded discoveryTime.
var errSlow = errors.New("discovery took too long")

// A forwarding forwards requests to the Backend of a Service.
type forwarding struct {
	aggregator *Aggregator
	service    *Service
}

// Forward returns a handler that forwards requests to the Backend of a Service, whatever their
// paths.
func (a *Aggregator) Forward(s *Service) http.Handler { return &forwarding{a, s} }

// ServeHTTP implements http.Handler. Its own answers are plain text, as in Kubernetes.
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
		To: to, Transport: span.Transport(r.Context(), ways.Usual), Upgrades: ways.Upgrades,
		Tell: func(h http.Header) { f.aggregator.front.Tell(h, user) },
	}.ServeHTTP(w, r)
}

// refusal returns the code and the reason with which a request is rejected; 0 if it is forwarded.
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

// within reports whether a path has no dot segments. The Backend might resolve those to a path
// other than the authorized one.
func within(r *http.Request) bool {
	for part := range strings.SplitSeq(r.URL.Path, "/") {
		if part == "." || part == ".." {
			return false
		}
	}
	return true
}

// enter counts a request against the limit of the Backend instead of that of the server.
// Long-running requests do not count.
func (b *Backend) enter(r *http.Request) (leave func(), ok bool) {
	q := request.From(r.Context())
	if q == nil || q.Place == nil {
		return func() {}, true
	}
	if q.Info.IsLongRunning() {
		q.Release()
		return func() {}, true
	}
	if b.pool.inside.Add(1) > maxRequests {
		b.pool.inside.Add(-1)
		return nil, false
	}
	q.Release()
	return func() { b.pool.inside.Add(-1) }, true
}

// isDiscovery reports whether a request is for the resources of a version.
func isDiscovery(r *http.Request) bool {
	info := request.InfoOf(r)
	return !info.IsResource && strings.Count(strings.Trim(info.Path, "/"), "/") == 2
}
