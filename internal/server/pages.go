package server

import (
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
	if s.options.Search != nil {
		p[searchPath] = s.options.Search
	}
	if s.options.Outcomes != nil {
		p[outcomesPath] = s.options.Outcomes
	}
	if s.options.AllChanges != nil {
		p[allChangesPath] = s.options.AllChanges
	}
	for _, z := range s.zpages() {
		p[z.Path] = z.Serve
	}
	for path, h := range s.health() {
		p[path] = h
	}
	for path, h := range s.debugPages() {
		p[path] = h
	}
	return p
}

// zpages returns the pages about the program for people. Each has a feature gate.
func (s *Server) zpages() (on []Page) {
	if s.options.Gates.On(gate.ComponentFlagz) {
		on = append(on, Page{"/flagz", "the values of all flags", s.flagz().ServeHTTP})
	}
	if s.options.Gates.On(gate.ComponentStatusz) {
		on = append(on, Page{"/statusz", "version, start time and uptime", s.statusz().ServeHTTP})
	}
	return on
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

const (
	// searchPath is the page that searches the stored objects.
	searchPath = "/search"
	// outcomesPath is the page with the last outcomes of admission webhooks and policies.
	outcomesPath = "/admission/outcomes"
	// allChangesPath is the page with the newest changes of all kinds.
	allChangesPath = "/history/changes"
)

// owns reports whether path is below one of the server's own roots. The API has no paths there.
func owns(path string) bool {
	switch path {
	case "/statusz", "/flagz", backupPath, forgetPath, changesPath, allChangesPath, outcomesPath, searchPath:
		return true
	}
	return isHealth(path) || under(path, "/version") || under(path, "/metrics") || under(path, "/debug") || under(path, forksPath) || under(path, fault.Path)
}
