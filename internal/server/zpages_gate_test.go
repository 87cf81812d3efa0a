package server

import (
	"slices"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// A page whose gate is off is not listed.
func TestListsOfGatedPages(t *testing.T) {
	s := &Server{options: Options{Gates: gate.With(map[gate.Name]bool{gate.ComponentFlagz: false})}}
	in := func(pages []Page, path string) bool {
		return slices.ContainsFunc(pages, func(p Page) bool { return p.Path == path })
	}
	for path, want := range map[string]bool{"/statusz": true, "/flagz": false} {
		if got := slices.Contains(s.zPaths(), path); got != want {
			t.Errorf("%s in /statusz: %v", path, got)
		}
		if got := in(s.links(), path); got != want {
			t.Errorf("%s in /debug/: %v", path, got)
		}
		if got := in(s.zpages(), path); got != want {
			t.Errorf("%s is served: %v", path, got)
		}
	}
}
