package server

import (
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/server/fault"
)

// pages maps the server's own paths to handlers: exact paths, and prefixes that end in a slash.
type pages map[string]http.Handler

func (s *Server) ownPages() pages {
	p := pages{
		"/version":  http.HandlerFunc(s.serveVersion),
		"/version/": http.HandlerFunc(s.serveVersion),
		"/metrics":  s.metricsPage(),

		"/metrics/slis": s.exposition(s.slis.registry()),
		backupPath:      s.backups,
		forgetPath:      serveForget(s.options.Forget, s.options.Catalog),
	}
	if s.options.Forks != nil {
		p[forksPath], p[forksRoot] = s.options.Forks, s.options.Forks
	}
	if s.options.Faults != nil {
		p[fault.Path], p[fault.Root] = s.options.Faults, s.options.Faults
	}
	if s.options.Changes != nil {
		p[changesPath] = s.options.Changes
	}
	maps.Copy(p, s.zpages())
	for path, h := range s.health() {
		p[path] = h
	}
	for path, h := range s.debugPages() {
		p[path] = h
	}
	return p
}

// zpages are the pages about the program for people.
var zpages = [...]struct {
	path, about string
	gate        gate.Name
}{
	{"/statusz", "version, start time and uptime", gate.ComponentStatusz},
	{"/flagz", "the values of all flags", gate.ComponentFlagz},
}

// zpages returns the pages whose feature gates are on.
func (s *Server) zpages() pages {
	p := pages{"/statusz": s.statusz(), "/flagz": s.flagz()}
	for _, z := range zpages {
		if !s.options.Gates.On(z.gate) {
			delete(p, z.path)
		}
	}
	return p
}

// lazy returns a handler that is created for its first request.
func lazy(create func() pages) http.Handler {
	created := sync.OnceValue(create)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { created().ServeHTTP(w, r) })
}

// ServeHTTP answers with the page at the path of a request.
func (p pages) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := p[r.URL.Path]
	for _, prefix := range []string{profiles, flagsPage + "/", forksRoot, fault.Root} {
		if h == nil && strings.HasPrefix(r.URL.Path, prefix) {
			h = p[prefix]
		}
	}
	if h == nil {
		h = http.NotFoundHandler()
	}
	h.ServeHTTP(w, r)
}

// changesPath is the page with the differences of a fork.
const changesPath = "/changes"

// owns reports whether path is below one of the server's own roots. The API has no paths there.
func owns(path string) bool {
	return isHealth(path) || under(path, "/version") || under(path, "/metrics") || under(path, "/debug") || path == "/statusz" || path == "/flagz" || path == backupPath || path == forgetPath || path == changesPath || under(path, forksPath) || under(path, fault.Path)
}
