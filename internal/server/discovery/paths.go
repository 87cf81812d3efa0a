package discovery

import (
	"net/http"
	"slices"

	"github.com/anykind/anykind/internal/object/codec"
)

// serveIndex answers / with all paths that can be read.
func (h *Handler) serveIndex(w http.ResponseWriter, v *groups) {
	paths := append([]string{"/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/"}, h.options.Paths...)
	for _, g := range v.groups {
		paths = append(paths, g.path())
		for _, one := range g.versions {
			paths = append(paths, g.path()+"/"+one.name)
		}
	}
	slices.Sort(paths)
	paths = slices.Compact(paths)
	doc, err := codec.Format{Pretty: true}.Render(encode(map[string][]string{"paths": paths}))
	if err != nil {
		panic("discovery: " + err.Error()) // it was JSON
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(doc)
}
