package recording

import (
	"fmt"
	"strings"
)

// An apiResource is an entry of unaggregated discovery.
type apiResource struct {
	Name, SingularName, Group, Version, Kind string
	Namespaced                               bool
	Verbs, ShortNames, Categories            []string
	StorageVersionHash                       string
}

var usual = "create,delete,deletecollection,get,list,patch,update,watch"

func (r apiResource) facts() []string {
	out := []string{r.comparable()}
	if r.StorageVersionHash != "" {
		out = append(out, "storage "+r.StorageVersionHash)
	}
	return out
}

// comparable returns the content that both forms of discovery have.
func (r apiResource) comparable() string {
	words := []string{r.Kind}
	if r.Group+r.Version != "" {
		words[0] = r.Group + "/" + r.Version + " " + r.Kind
	}
	add := func(name, value string) {
		if value != "" {
			words = append(words, name+"="+value)
		}
	}
	scope := "cluster"
	if r.Namespaced {
		scope = "namespaced"
	}
	words = append(words, scope)
	add("singular", r.SingularName)
	verbs := strings.Join(r.Verbs, ",")
	if verbs == usual {
		verbs = "all"
	}
	add("verbs", verbs)
	add("short", strings.Join(r.ShortNames, ","))
	add("categories", strings.Join(r.Categories, ","))
	return strings.Join(words, " ")
}

// aggregated requests aggregated discovery, and returns its entries formatted by comparable.
func (s Server) aggregated() (map[string]string, error) {
	type groupVersionKind struct{ Group, Version, Kind string }
	type list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version, Freshness string
				Resources          []struct {
					Resource, Scope, SingularResource string
					ResponseKind                      groupVersionKind
					Verbs, ShortNames, Categories     []string
					Subresources                      []struct {
						Subresource  string
						ResponseKind groupVersionKind
						Verbs        []string
					}
				}
			}
		}
	}
	out := map[string]string{}
	for _, path := range []string{"/api", "/apis"} {
		var l list
		if err := s.get(path, aggregated, &l); err != nil {
			return nil, err
		}
		for _, item := range l.Items {
			g := group{name: item.Metadata.Name}
			for _, v := range item.Versions {
				if v.Freshness != "Current" {
					return nil, fmt.Errorf("%s is %s", g.groupVersion(v.Version), v.Freshness)
				}
				for _, r := range v.Resources {
					subject, namespaced := g.groupVersion(v.Version)+" "+r.Resource, r.Scope == "Namespaced"
					out[subject] = apiResource{
						Kind: r.ResponseKind.Kind, Group: r.ResponseKind.Group, Version: r.ResponseKind.Version, Namespaced: namespaced,
						SingularName: r.SingularResource, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
					}.comparable()
					for _, sub := range r.Subresources {
						out[subject+"/"+sub.Subresource] = apiResource{
							Kind: sub.ResponseKind.Kind, Group: sub.ResponseKind.Group, Version: sub.ResponseKind.Version,
							Namespaced: namespaced, Verbs: sub.Verbs,
						}.comparable()
					}
				}
			}
		}
	}
	return out, nil
}
