// Package generate makes random sequences of requests over the same few objects.
//
// Each kind of request has a generator in a file of its own; All lists them. A generator depends only
// on a source of random numbers and on the World: the same seed gives the same requests. The package
// knows valid and invalid requests, and not the expected responses.
package generate

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// A World has the resources that both servers serve.
type World struct {
	Resources []*Resource // built-in and custom
}

// A Resource is a kind in a version.
type Resource struct {
	Group, Version, Plural, Kind string
	Namespaced                   bool
	Custom                       bool
	Verbs                        []string
	Subresources                 []string
	Schema                       *Schema
	Samples                      []map[string]any // valid objects, if there are any
}

// Label names a resource in signatures.
func (r *Resource) Label() string {
	switch {
	case r.Custom:
		return "custom"
	case r.Group == "":
		return r.Plural
	}
	return r.Plural + "." + r.Group
}

// APIVersion is GROUP/VERSION.
func (r *Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Root is the path of the group version.
func (r *Resource) Root() string {
	if r.Group == "" {
		return "/api/" + r.Version
	}
	return "/apis/" + r.APIVersion()
}

// Path is the path of an object in a namespace, or of the collection if name is empty.
func (r *Resource) Path(namespace, name string) string {
	path := r.Root()
	if r.Namespaced && namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + r.Plural
	if name != "" {
		path += "/" + name
	}
	return path
}

// crowded reports whether a namespace has objects from elsewhere, such as the ServiceAccount default,
// which another program creates with kube-apiserver.
func (r *Resource) crowded() bool {
	return r.Group == "" && (r.Plural == "configmaps" || r.Plural == "serviceaccounts")
}

// Can reports whether a resource has a verb.
func (r *Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Has reports whether a resource has a subresource.
func (r *Resource) Has(subresource string) bool { return slices.Contains(r.Subresources, subresource) }

//go:embed definitions/*.yaml samples/*.yaml audited/*.yaml
var files embed.FS

// Definitions returns the CustomResourceDefinitions of the custom objects.
func Definitions() ([]map[string]any, error) { return documents("definitions") }

// documents returns the objects of the files in a folder.
func documents(folder string) ([]map[string]any, error) {
	names, err := fs.Glob(files, folder+"/*.yaml")
	if err != nil {
		return nil, err
	}
	var out []map[string]any
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		for i, text := range strings.Split(string(data), "\n---\n") {
			var object map[string]any
			if err := yaml.Unmarshal([]byte(text), &object); err != nil {
				return nil, fmt.Errorf("%s: document %d: %w", name, i+1, err)
			}
			out = append(out, object)
		}
	}
	return out, nil
}

// samples returns valid objects of a kind.
func samples(r *Resource) ([]map[string]any, error) {
	all, err := documents("samples")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(o map[string]any) bool {
		return o["apiVersion"] != r.APIVersion() || o["kind"] != r.Kind
	}), nil
}

// Custom returns the resources of definitions.
func Custom(definitions []map[string]any) ([]*Resource, error) {
	var out []*Resource
	for _, d := range definitions {
		data, err := json.Marshal(d["spec"])
		if err != nil {
			return nil, err
		}
		var spec struct {
			Group    string
			Scope    string
			Names    struct{ Plural, Kind string }
			Versions []struct {
				Name         string
				Served       bool
				Schema       struct{ OpenAPIV3Schema *Schema }
				Subresources map[string]any
			}
		}
		if err := json.Unmarshal(data, &spec); err != nil {
			return nil, err
		}
		for _, v := range spec.Versions {
			if !v.Served {
				continue
			}
			r := &Resource{Group: spec.Group, Version: v.Name, Plural: spec.Names.Plural, Kind: spec.Names.Kind,
				Namespaced: spec.Scope == "Namespaced", Custom: true, Schema: v.Schema.OpenAPIV3Schema,
				Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}}
			for _, name := range []string{"scale", "status"} {
				if v.Subresources[name] != nil {
					r.Subresources = append(r.Subresources, name)
				}
			}
			if r.Samples, err = samples(r); err != nil {
				return nil, err
			}
			out = append(out, r)
		}
	}
	return out, nil
}

// A Discovered is one group of aggregated discovery.
type Discovered struct {
	Metadata struct{ Name string }
	Versions []struct {
		Version   string
		Resources []struct {
			Resource     string
			ResponseKind struct{ Kind string }
			Scope        string
			Verbs        []string
			Subresources []struct{ Subresource string }
		}
	}
}

// BuiltIn returns the resources that both servers have, with the subresources that both have.
// document returns an OpenAPI v3 document by the path of its group version.
func BuiltIn(theirs, ours []Discovered, document func(root string) ([]byte, error)) ([]*Resource, error) {
	mine := map[string]*Resource{}
	for _, r := range resources(ours) {
		mine[r.APIVersion()+" "+r.Plural] = r
	}
	var out []*Resource
	read := map[string]schemas{}
	for _, r := range resources(theirs) {
		my := mine[r.APIVersion()+" "+r.Plural]
		if my == nil {
			continue
		}
		r.Subresources = slices.DeleteFunc(r.Subresources, func(name string) bool { return !my.Has(name) })
		if read[r.Root()] == nil {
			data, err := document(r.Root())
			if err != nil {
				return nil, err
			}
			if read[r.Root()], err = parseDocument(data); err != nil {
				return nil, err
			}
		}
		r.Schema = read[r.Root()].kind(r.Group, r.Version, r.Kind)
		var err error
		if r.Samples, err = samples(r); err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

func resources(groups []Discovered) []*Resource {
	var out []*Resource
	for _, g := range groups {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				resource := &Resource{Group: g.Metadata.Name, Version: v.Version, Plural: r.Resource, Kind: r.ResponseKind.Kind,
					Namespaced: r.Scope == "Namespaced", Verbs: r.Verbs}
				for _, s := range r.Subresources {
					resource.Subresources = append(resource.Subresources, s.Subresource)
				}
				out = append(out, resource)
			}
		}
	}
	return out
}
