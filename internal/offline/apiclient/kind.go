package apiclient

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
)

// A Kind is a kind of objects, in its preferred version.
type Kind struct {
	schema.GroupVersionResource
	Kind       string
	Namespaced bool
	HasStatus  bool // as a subresource
	names      []string
}

func (k *Kind) is(word string) bool {
	return slices.ContainsFunc(k.names, func(name string) bool {
		return strings.EqualFold(word, name) || k.Group != "" && strings.EqualFold(word, name+"."+k.Group)
	})
}

// Title names an object as kubectl does.
func (k *Kind) Title(o object.Tree) string { return k.Named(object.Namespace(o), object.Name(o)) }

// Named names an object by its namespace and name.
func (k *Kind) Named(namespace, name string) string {
	title := k.GroupResource().String() + "/" + name
	if k.Namespaced {
		return title + " in " + namespace
	}
	return title
}

// Path returns the path of an object, or of all objects for no name.
func (k *Kind) Path(namespace, name string) string {
	path := "/api/" + k.Version
	if k.Group != "" {
		path = "/apis/" + k.Group + "/" + k.Version
	}
	if k.Namespaced && namespace != "" {
		path += "/namespaces/" + url.PathEscape(namespace)
	}
	path += "/" + k.Resource
	if name != "" {
		path += "/" + url.PathEscape(name)
	}
	return path
}

// Find returns the kind that a word names: a plural, singular, kind or short name, with the group if
// needed.
func (s Server) Find(kinds []Kind, word string) (*Kind, error) {
	var found []*Kind
	var names []string
	for i := range kinds {
		if kinds[i].is(word) {
			found, names = append(found, &kinds[i]), append(names, kinds[i].GroupResource().String())
		}
	}
	switch {
	case len(found) == 0:
		return nil, fmt.Errorf("%s has no kind %q", cmp.Or(s.Name, "the server"), word)
	case len(found) > 1 && found[0].Group != "": // the core group comes first
		return nil, fmt.Errorf("%q is ambiguous: choose one of %s", word, strings.Join(names, ", "))
	}
	return found[0], nil
}

// Of returns the kind of an object; nil if it is none of kinds. The versions may differ.
func Of(kinds []Kind, o object.Tree) *Kind {
	group, _, found := strings.Cut(object.APIVersion(o), "/")
	if !found {
		group = ""
	}
	for i := range kinds {
		if kinds[i].Kind == object.Kind(o) && kinds[i].Group == group {
			return &kinds[i]
		}
	}
	return nil
}

// Kinds returns all kinds that can be listed.
func (s Server) Kinds(ctx context.Context) (all []Kind, err error) {
	const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	for _, root := range []string{"/api", "/apis"} {
		var groups apidiscovery.APIGroupDiscoveryList
		if _, err := s.Do(ctx, Request{Method: http.MethodGet, Path: root, Accept: accept}, &groups); err != nil {
			return nil, err
		}
		for _, g := range groups.Items {
			seen := map[string]bool{}
			for _, v := range g.Versions {
				for i := range v.Resources {
					r := &v.Resources[i]
					if seen[r.Resource] || !slices.Contains(r.Verbs, "list") {
						continue
					}
					seen[r.Resource] = true
					all = append(all, kindOf(schema.GroupVersion{Group: g.Name, Version: v.Version}, r))
				}
			}
		}
	}
	return all, nil
}

func kindOf(version schema.GroupVersion, r *apidiscovery.APIResourceDiscovery) Kind {
	k := Kind{
		GroupVersionResource: version.WithResource(r.Resource),
		Namespaced:           r.Scope == apidiscovery.ScopeNamespace,
		HasStatus: slices.ContainsFunc(r.Subresources, func(s apidiscovery.APISubresourceDiscovery) bool {
			return s.Subresource == "status"
		}),
		names: append([]string{r.Resource, r.SingularResource}, r.ShortNames...),
	}
	if r.ResponseKind != nil {
		k.Kind = r.ResponseKind.Kind
		k.names = append(k.names, k.Kind)
	}
	return k
}
