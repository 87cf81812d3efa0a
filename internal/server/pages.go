package server

import (
	"net/http"
	"strings"
)

// pages are the paths that the server answers itself: exact ones, and prefixes
// that end in a slash.
type pages map[string]http.Handler

func (s *Server) ownPages() pages {
	p := pages{
		"/version":  http.HandlerFunc(serveVersion),
		"/version/": http.HandlerFunc(serveVersion),
		"/metrics":  s.metricsPage(),
	}
	for path, h := range s.health() {
		p[path] = h
	}
	for path, h := range s.debugPages() {
		p[path] = h
	}
	return p
}

// find returns the page at path, or nil.
func (p pages) find(path string) http.Handler {
	if h := p[path]; h != nil {
		return h
	}
	if strings.HasPrefix(path, profiles) {
		return p[profiles]
	}
	return nil
}

// owns reports whether path is below one of the server's own roots, where the
// API has nothing to say.
func owns(path string) bool {
	return isHealth(path) || under(path, "/version") || under(path, "/metrics") || under(path, "/debug")
}

// route is the end of the chain.
func (s *Server) route(x *exchange, r *http.Request) {
	path := r.URL.Path
	if !owns(path) {
		s.options.API.ServeHTTP(x, r)
		return
	}
	if h := s.pages.find(path); h != nil {
		h.ServeHTTP(x, r)
		return
	}
	http.NotFound(x, r)
}
