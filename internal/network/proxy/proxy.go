// Package proxy forwards requests to another server, including upgraded connections.
//
// It does not choose the server, and authorizes nothing.
package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Transport connects to servers of any identity: the certificates of pods and Services are signed
// by unknown CAs.
func Transport(dial func(ctx context.Context, network, address string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		DialContext:         dial,
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true, // the client negotiates compression
	}
}

// A Stream is an http.Handler that forwards upgraded connections only. The query is that of the
// URL.
type Stream struct {
	To        *url.URL
	Transport http.RoundTripper
}

func (s Stream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !upgrades(r) {
		request.Fail(w, r, status.BadRequest("Upgrade request required"))
		return
	}
	forward(w, r, way{s.Transport, func(p *httputil.ProxyRequest) { p.Out.URL = s.To }, refuseOther, failed})
}

// A Page is an http.Handler that forwards all requests below one of our paths. The query is that
// of the request.
type Page struct {
	To        *url.URL // with the requested path
	Transport http.RoundTripper
}

func (s Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	to := *s.To
	to.RawQuery = r.URL.RawQuery
	if strings.HasSuffix(r.URL.Path, "/") && !strings.HasSuffix(to.Path, "/") {
		to.Path += "/"
	}
	upgraded := upgrades(r)
	if to.Path == "" && !upgraded && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		there := *r.URL
		there.Path, there.RawPath = r.URL.Path+"/", ""
		w.Header().Set("Location", there.RequestURI())
		w.WriteHeader(http.StatusMovedPermanently)
		return
	}
	below := strings.TrimSuffix(r.URL.Path, to.Path)
	modify := func(a *http.Response) error { return moved(a, below, r.Host) }
	if upgraded {
		modify = refuseOther
	}
	forward(w, r, way{s.Transport, func(p *httputil.ProxyRequest) {
		p.Out.URL = &to
		if upgraded {
			return
		}
		uri := path.Join(below, to.EscapedPath())
		if strings.HasSuffix(to.Path, "/") {
			uri += "/"
		}
		p.Out.Header.Set("X-Forwarded-Uri", uri)
	}, modify, failed})
}

// upgrades reports whether a client asks to upgrade its connection.
func upgrades(r *http.Request) bool {
	for _, line := range r.Header.Values("Connection") {
		if strings.Contains(strings.ToLower(line), "upgrade") {
			return true
		}
	}
	return false
}

// A way is the destination and the options of forward.
type way struct {
	transport http.RoundTripper
	rewrite   func(*httputil.ProxyRequest)
	modify    func(*http.Response) error
	failed    func(http.ResponseWriter, *http.Request, error)
}

// forward forwards a request and its answer, or both directions of an upgraded connection.
func forward(w http.ResponseWriter, r *http.Request, by way) {
	p := httputil.ReverseProxy{
		Transport:     by.transport,
		FlushInterval: -1,                                                      // flush at once: a client may wait for any part
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // ends of connections are not logged
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.Host = p.In.Host
			if ip, _, err := net.SplitHostPort(p.In.RemoteAddr); err == nil {
				p.Out.Header.Set("X-Forwarded-For", strings.Join(append(p.In.Header.Values("X-Forwarded-For"), ip), ", "))
			}
			by.rewrite(p)
		},
		BufferPool:     shared,
		ModifyResponse: by.modify,
		ErrorHandler:   by.failed,
	}
	p.ServeHTTP(w, r)
}

// An upgradeError reports that a server refused the upgrade.
type upgradeError struct{ code int }

func (e *upgradeError) Error() string {
	return fmt.Sprintf("invalid upgrade response: status code %d", e.code)
}

// refuseOther accepts an upgraded connection or an error answer.
func refuseOther(a *http.Response) error {
	if a.StatusCode != http.StatusSwitchingProtocols && a.StatusCode < http.StatusBadRequest {
		return &upgradeError{a.StatusCode}
	}
	return nil
}

// failed answers a request that could not be forwarded, in Kubernetes' words.
func failed(w http.ResponseWriter, r *http.Request, err error) {
	var other *upgradeError
	switch {
	case errors.As(err, &other):
	case upgrades(r):
		err = fmt.Errorf("error dialing backend: %w", err)
	default:
		err = status.Unavailable(fmt.Sprintf("error trying to reach service: %v", err))
	}
	request.Fail(w, r, err)
}

// moved rewrites a redirect to the same server, so that it leads through us.
func moved(a *http.Response, below, host string) error {
	location := a.Header.Get("Location")
	if location == "" {
		return nil
	}
	to, err := url.Parse(location)
	if err != nil {
		return status.Internal(fmt.Errorf("error trying to parse Location header: %w", err))
	}
	other := to.Host != "" && to.Host != a.Request.URL.Host && to.Host != host
	if other || !strings.HasPrefix(to.Path, "/") {
		return nil
	}
	to.Scheme, to.Host = "", ""
	if !strings.HasPrefix(to.Path, below) {
		slash := strings.HasSuffix(to.Path, "/")
		if to.Path, to.RawPath = path.Join(below, to.Path), ""; slash {
			to.Path += "/"
		}
	}
	a.Header.Set("Location", to.String())
	return nil
}

// At returns the URL of a page. The default scheme is http, and the default port that of the
// scheme.
func At(scheme, host, port, below string) *url.URL {
	u := &url.URL{Scheme: cmp.Or(scheme, "http"), Path: below}
	switch {
	case port != "":
		u.Host = net.JoinHostPort(host, port)
	case strings.Contains(host, ":"):
		u.Host = "[" + host + "]"
	default:
		u.Host = host
	}
	return u
}

// Reachable reports whether clients may reach an address through us. Loopback and link-local
// addresses are off limits.
func Reachable(address string) bool {
	ip := net.ParseIP(address)
	return ip != nil && ip.IsGlobalUnicast()
}
