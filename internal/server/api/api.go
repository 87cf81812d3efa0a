// Package api is the table of paths and their handlers.
//
// A Table is a list of areas, read from top to bottom: the server's own pages, other API servers,
// discovery, objects. The package knows paths and handlers. It does not know what a handler does,
// or who may call it.
package api

import "net/http"

// An Area returns the handler of a request if its path belongs to the area, even if nothing is
// there, else nil.
type Area func(*http.Request) http.Handler

// At returns the area of the paths for which owns returns true.
func At(owns func(path string) bool, h http.Handler) Area {
	return func(r *http.Request) http.Handler {
		if owns(r.URL.Path) {
			return h
		}
		return nil
	}
}

// Everywhere returns the area of every path. It comes last in a Table.
func Everywhere(h http.Handler) Area { return func(*http.Request) http.Handler { return h } }

// A Table passes a request to the first area that has its path. If none has, it answers 404.
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
