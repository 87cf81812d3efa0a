// Package watch checks that watches are correct.
//
// Writers write objects of several kinds and log each acknowledged write with its revision. Watchers
// of all sorts record their events, across broken connections and restarts of the server. In the end,
// every stream is compared with the log: it must have each selected change exactly once, in order,
// without gaps, and no bookmark before an earlier change.
//
// The package knows the HTTP API and the guarantees of a watch. It runs the real program, and knows
// nothing of its internals.
package watch

import (
	"slices"
	"strings"
)

// A kind is one resource to write and watch. Objects differ only in their metadata, so that all kinds
// are alike.
type kind struct {
	apiVersion string
	name       string
	plural     string
	namespaced bool
}

var kinds = []kind{
	{"v1", "ConfigMap", "configmaps", true},
	{"v1", "Secret", "secrets", true},
	{"coordination.k8s.io/v1", "Lease", "leases", true},
	{"check.example.com/v1", "Gadget", "gadgets", true},
	{"check.example.com/v1", "Hub", "hubs", false},
}

// CustomResourcesOnly disables the built-in kinds: for a server behind another one, which has those
// itself.
func CustomResourcesOnly() {
	kinds = slices.DeleteFunc(kinds, func(k kind) bool { return k.definition() == nil })
}

var namespaces = []string{"default", "other"}

// spaces returns the namespaces with objects of a kind.
func (k *kind) spaces() []string {
	if k.namespaced {
		return namespaces
	}
	return []string{""}
}

// collection is the path of the objects in a namespace, or in all if it is "".
func (k *kind) collection(namespace string) string {
	path := "/apis/" + k.apiVersion
	if !strings.Contains(k.apiVersion, "/") {
		path = "/api/" + k.apiVersion
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + k.plural
}

// definition returns the CustomResourceDefinition of a kind, nil for a built-in one.
func (k *kind) definition() any {
	group, version, custom := strings.Cut(k.apiVersion, "/")
	if !strings.Contains(group, "example.com") || !custom {
		return nil
	}
	scope := "Cluster"
	if k.namespaced {
		scope = "Namespaced"
	}
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": k.plural + "." + group},
		"spec": map[string]any{
			"group": group, "scope": scope,
			"names": map[string]any{"plural": k.plural, "kind": k.name},
			"versions": []any{map[string]any{
				"name": version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}},
			}},
		},
	}
}

// A key identifies an object.
type key struct {
	kind      int // index in kinds
	namespace string
	name      string
}

func (k key) String() string {
	return kinds[k.kind].plural + "/" + k.namespace + "/" + k.name
}

// path is the path of the object.
func (k key) path() string {
	return kinds[k.kind].collection(k.namespace) + "/" + k.name
}

// A state is the state of an object between two writes.
type state struct {
	uid      string
	label    string // "" for none
	value    string // unique for every write
	revision int64
}
