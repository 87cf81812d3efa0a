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

// A Server leads to another API server, which answers at the same paths. It is a http.Handler.
// What goes wrong on the way is answered with text, as Kubernetes does here.
type Server struct {
	// To is the URL that is asked for.
	To *url.URL
	// Transport connects to the server, and Upgrades where the client wants another protocol.
	Transport, Upgrades http.RoundTripper
	// Tell says in headers who asks. It sees those of the client.
	Tell func(http.Header)
}

func (s Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	by := way{s.Transport, s.rewrite, s.answered, unreachable}
	if upgrades(r) {
		by = way{s.Upgrades, s.rewrite, s.upgraded, unreachable}
	}
	forward(w, r, by)
}

// rewrite makes the request that the other server sees. A trailer could say later who asks.
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

// answered lets an answer pass, unless it leads the client elsewhere: it would go there with
// what it shows to this server.
func (s Server) answered(a *http.Response) error {
	if a.StatusCode >= 300 && a.StatusCode < 400 && a.Header.Get("Location") != "" {
		const message = "the backend attempted to redirect this request, which is not permitted"
		_ = a.Body.Close() // it is not read
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

// upgraded lets the connection go through only if the server talks as the client wants to.
// Otherwise the client could say more to it, in the name of this server.
func (s Server) upgraded(a *http.Response) error { return refuseOther(a) }

// unreachable answers a request that could not be sent on.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if ctx := r.Context(); ctx.Err() != nil && context.Cause(ctx) == ctx.Err() { // not for a reason of this proxy
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
