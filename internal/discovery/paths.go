package discovery

import (
	"net/http"
	"slices"

	"github.com/anykind/anykind/internal/codec"
	"github.com/anykind/anykind/internal/resource"
)

// serveIndex answers / with all paths at which something can be read.
func (h *Handler) serveIndex(w http.ResponseWriter, set *resource.Set) {
	paths := append([]string{"/apis", "/apis/", "/openapi/v2", "/openapi/v3", "/openapi/v3/"}, h.options.Paths...)
	for _, g := range set.Groups() {
		paths = append(paths, g.Path())
		for _, v := range g.Versions {
			paths = append(paths, g.Path()+"/"+v)
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
