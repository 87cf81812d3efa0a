package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	"github.com/anykind/anykind/internal/object/request"
)

// A Server is an http.Handler that forwards requests to another API server, at the same paths.
// Its own errors are plain text, as in Kubernetes.
type Server struct {
	// To is the URL of the request.
	To *url.URL
	// Transport is for ordinary requests, Upgrades for those that upgrade the connection.
	Transport, Upgrades http.RoundTripper
	// Tell replaces the client's identity headers with those for the user.
	Tell func(http.Header)
}

func (s Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	by := way{s.Transport, s.rewrite, s.answered, unreachable}
	if upgrades(r) {
		by = way{s.Upgrades, s.rewrite, s.upgraded, unreachable}
	}
	forward(w, r, by)
}

// rewrite builds the forwarded request. Trailers are dropped, because they could set identity
// headers later.
func (s Server) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL, p.Out.Host, p.Out.Trailer = s.To, s.To.Host, nil
	h := p.Out.Header
	for name := range h {
		if name == "Authorization" || strings.HasPrefix(name, "Impersonate-") {
			delete(h, name)
		}
	}
	if q := request.From(p.In.Context()); q != nil && q.AuditID != "" {
		h.Set("Audit-Id", q.AuditID)
	}
	if !upgrades(p.In) {
		h.Set("X-Forwarded-Uri", s.To.EscapedPath())
		h.Set("X-Forwarded-Host", s.To.Host)
		h.Set("X-Forwarded-Proto", s.To.Scheme)
	}
	s.Tell(h)
}

// answered rejects redirects: the client would send its credentials for this server to another
// one.
func (s Server) answered(a *http.Response) error {
	if a.StatusCode >= 300 && a.StatusCode < 400 && a.Header.Get("Location") != "" {
		const message = "the backend attempted to redirect this request, which is not permitted"
		_ = a.Body.Close() // not read
		a.StatusCode, a.Header, a.Trailer = http.StatusBadGateway, http.Header{"Content-Type": {"text/plain; charset=utf-8"}}, nil
		a.Body, a.ContentLength = io.NopCloser(strings.NewReader(message)), int64(len(message))
		return nil
	}
	for name := range a.Header {
		if strings.HasPrefix(name, "Access-Control-Allow-") {
			delete(a.Header, name)
		}
	}
	return nil
}

// upgraded accepts the connection only if the server upgraded it. Otherwise the client could send
// more requests on it with the identity of this server.
func (s Server) upgraded(a *http.Response) error { return refuseOther(a) }

// unreachable answers a request that could not be forwarded.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if ctx := r.Context(); ctx.Err() != nil && context.Cause(ctx) == ctx.Err() { // the client or a timeout ended it
		request.Fail(w, r, err)
		return
	}
	var other *upgradeError
	switch {
	case errors.As(err, &other):
	case upgrades(r):
		err = fmt.Errorf("error dialing backend: %w", err)
	default:
		err = fmt.Errorf("error trying to reach service: %w", err)
	}
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}
