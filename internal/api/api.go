// Package api is the table of paths and their handlers.
//
// A Table is a list of areas, read from top to bottom: the server's own pages, discovery,
// objects, and others to come. The package knows paths and handlers. It does not know what a
// handler does, or who may call it.
package api

import "net/http"

// An Area is the paths that one handler answers.
type Area struct {
	// Owns reports whether a path belongs to the area, also where nothing is there.
	Owns    func(path string) bool
	Handler http.Handler
}

// Everywhere owns every path. It is the last area of a Table, if there is one.
func Everywhere(string) bool { return true }

// A Table sends a request to the first area that owns its path. What no area owns is
// not found.
type Table []Area

// ServeHTTP implements http.Handler.
func (t Table) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i := range t {
		if t[i].Owns(r.URL.Path) {
			t[i].Handler.ServeHTTP(w, r)
			return
		}
	}
	http.NotFound(w, r)
}
