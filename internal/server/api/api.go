// Package api is the table of paths and their handlers.
//
// A Table is a list of areas, read from top to bottom: the server's own pages, other API servers,
// discovery, objects. The package knows paths and handlers. It does not know what a handler does,
// or who may call it.
package api

import "net/http"

// An Area returns what answers a request if its path belongs to the area, also where nothing is
// there, and nil if not.
type Area func(*http.Request) http.Handler

// At is the area of the paths that owns says.
func At(owns func(path string) bool, h http.Handler) Area {
	return func(r *http.Request) http.Handler {
		if owns(r.URL.Path) {
			return h
		}
		return nil
	}
}

// Everywhere is the area of every path. It is the last one of a Table, if there is one.
func Everywhere(h http.Handler) Area { return func(*http.Request) http.Handler { return h } }

// A Table sends a request to the first area that its path belongs to. What belongs to none is
// not found.
type Table []Area

// ServeHTTP implements http.Handler.
func (t Table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for _, area := range t {
		if h := area(r); h != nil {
			h.ServeHTTP(w, r)
			return
		}
	}
	http.NotFound(w, r)
}
