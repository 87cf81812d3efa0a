package publish

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// The descriptions of these types are in the source of Kubernetes in a form that programs cannot read.
// Ours have our own words.
var ownWords = []string{
	"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
	"io.k8s.apimachinery.pkg.apis.meta.v1.GroupResource", "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
	"io.k8s.apimachinery.pkg.apis.meta.v1.Time", "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
	"io.k8s.apimachinery.pkg.runtime.RawExtension", "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
	"io.k8s.apimachinery.pkg.version.Info",
}

// builtin compares the documents of kinds without definitions, as far as we have the kinds: Kubernetes
// has more.
func (c *comparison) builtin(t *testing.T) {
	for _, path := range c.native(t) {
		theirs, ours := c.both(t, path, "")
		rows := func(a *answer) map[string]any {
			out := map[string]any{}
			list, _ := a.tree().(map[string]any)["resources"].([]any)
			for _, row := range list {
				out[row.(map[string]any)["name"].(string)] = row
			}
			return out
		}
		known(t, path, rows(theirs), rows(ours))

		path = "/openapi/v3" + path
		theirs, ours = c.both(t, path, "")
		want, got := theirs.tree().(map[string]any), ours.tree().(map[string]any)
		known(t, path, want["paths"].(map[string]any), got["paths"].(map[string]any))
		schemas := func(tree map[string]any) map[string]any {
			out, _ := tree["components"].(map[string]any)["schemas"].(map[string]any)
			for name, s := range out {
				own := slices.ContainsFunc(ownWords, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
				undescribed(s, own)
			}
			return out
		}
		known(t, path, schemas(want), schemas(got))
	}
}

// native returns the paths of the group versions without definitions.
func (c *comparison) native(t *testing.T) []string {
	paths := []string{"/api/v1"}
	listed, _ := c.ours.get(t, "/apis", "").tree().(map[string]any)["groups"].([]any)
	for _, g := range listed {
		group := g.(map[string]any)
		if slices.Contains(c.groups, group["name"].(string)) {
			continue
		}
		for _, v := range group["versions"].([]any) {
			paths = append(paths, "/apis/"+v.(map[string]any)["groupVersion"].(string))
		}
	}
	return paths
}

// known compares our fields of a value with Kubernetes'.
func known(t *testing.T, at string, theirs, ours map[string]any) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(ours)) {
		same(t, at+" "+name, theirs[name], ours[name])
	}
}

// undescribed removes the descriptions of enum values from a schema, and all descriptions if those are
// our own.
func undescribed(tree any, own bool) {
	switch tree := tree.(type) {
	case map[string]any:
		if said, ok := tree["description"].(string); ok {
			tree["description"], _, _ = strings.Cut(said, "Possible enum values:")
			if own {
				delete(tree, "description")
			}
		}
		for _, v := range tree {
			undescribed(v, own)
		}
	case []any:
		for _, v := range tree {
			undescribed(v, own)
		}
	}
}
