// Package infer infers CustomResourceDefinitions from sample objects.
//
// It reads objects one after the other, and collects evidence for each place in them: types, values
// while they are few, fields that occur together, lists with a unique key. At the end it decides the
// schema: required fields, enums, maps, formats. All samples are valid by the result, in any order.
// Similarities of few samples may be chance, so most rules need a minimum of samples. The package does
// not know files or servers.
package infer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/version"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/groupversion"
)

// MinSamples is the minimum of Options if they have none.
const MinSamples = 3

// Options replace decisions by samples. The zero value leaves all decisions to the samples.
type Options struct {
	// MinSamples is the minimum number of samples with a place for rules about it: required fields,
	// enums, formats, lists with unique keys.
	MinSamples int
	// Scope of the kind; if empty, the scope of the samples.
	Scope v1.ResourceScope
	// Names of the kind; empty ones are derived from the kind.
	Names v1.CustomResourceDefinitionNames
}

// A Result is a definition with its open questions.
type Result struct {
	Definition *v1.CustomResourceDefinition
	Samples    int
	Notes      []Note
}

// A Note reports a guess or a gap. Without a version it concerns the whole definition.
type Note struct {
	Version, Path, Text string
	// Hint marks a suggestion: the definition loses nothing without it.
	Hint bool
}

// String is the note in a line.
func (n Note) String() string {
	switch {
	case n.Version == "":
		return n.Text
	case n.Path == "":
		return n.Version + ": " + n.Text
	}
	return n.Version + " " + n.Path + ": " + n.Text
}

// Samples has the evidence of all kinds. The zero value is empty.
type Samples struct{ kinds map[schema.GroupKind]*sampled }

// sampled has the evidence of a kind.
type sampled struct {
	versions map[string]*place
	objects  int
	// Samples with a namespace, and those without one that come from a server, which would have added
	// it.
	namespaced, withoutNamespace int
}

// ErrBuiltIn says that no definition can define the kind of an object: Kubernetes has it, or its group
// is none of a definition.
var ErrBuiltIn = errors.New("not a kind for a CustomResourceDefinition")

// Add shows it an object.
func (s *Samples) Add(t object.Tree) error {
	gvk := schema.FromAPIVersionAndKind(object.APIVersion(t), object.Kind(t))
	if !definable(gvk) {
		return fmt.Errorf("%s %s is %w", object.APIVersion(t), object.Kind(t), ErrBuiltIn)
	}
	if s.kinds == nil {
		s.kinds = map[schema.GroupKind]*sampled{}
	}
	k := s.kinds[gvk.GroupKind()]
	if k == nil {
		k = &sampled{versions: map[string]*place{}}
		s.kinds[gvk.GroupKind()] = k
	}
	k.objects++
	switch {
	case object.Namespace(t) != "":
		k.namespaced++
	case object.UID(t) != "" || object.ResourceVersion(t) != "":
		k.withoutNamespace++
	}
	root := k.versions[gvk.Version]
	if root == nil {
		root = &place{}
		k.versions[gvk.Version] = root
	}
	own := object.Tree{}
	for name, v := range t {
		if name != "apiVersion" && name != "kind" && name != "metadata" {
			own[name] = v
		}
	}
	root.add(own, k.objects)
	return nil
}

// definable reports whether a definition may define a kind: its group is a domain, and none in which
// Kubernetes itself has all kinds.
func definable(gvk schema.GroupVersionKind) bool {
	return gvk.Kind != "" && gvk.Version != "" && strings.Contains(gvk.Group, ".") && len(validation.IsDNS1123Subdomain(gvk.Group)) == 0 &&
		!slices.ContainsFunc(groupversion.OfServer(), func(gv schema.GroupVersion) bool { return gv.Group == gvk.Group })
}

// Kinds returns the kinds of the samples in order.
func (s *Samples) Kinds() []schema.GroupKind {
	return slices.SortedStableFunc(maps.Keys(s.kinds), func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
}

// Definition returns the definition of a kind with samples.
func (s *Samples) Definition(kind schema.GroupKind, o Options) Result {
	k := s.kinds[kind]
	o.MinSamples = cmp.Or(max(o.MinSamples, 0), MinSamples)
	d := New(kind, o.Names)
	r := Result{Definition: d, Samples: k.objects}
	d.Spec.Scope = o.Scope
	if o.Scope == "" {
		var guess string
		if d.Spec.Scope, guess = k.scope(kind.Kind); guess != "" {
			r.Notes = append(r.Notes, Note{Text: guess})
		}
	}
	if k.objects < o.MinSamples {
		r.Notes = append(r.Notes, Note{Text: fmt.Sprintf("with fewer than %d samples, few fields are required and no field is an enum (--min-samples)", o.MinSamples)})
	}
	names := slices.SortedStableFunc(maps.Keys(k.versions), func(a, b string) int { return -version.CompareKubeAwareVersionStrings(a, b) })
	for i, name := range names {
		b := &builder{minimum: o.MinSamples, version: name}
		v := b.build(k.versions[name])
		v.Storage = i == 0
		d.Spec.Versions = append(d.Spec.Versions, v)
		r.Notes = append(r.Notes, b.notes...)
	}
	if len(names) > 1 {
		r.Notes = append(r.Notes, Note{Text: fmt.Sprintf("%s is the storage version, and there is no conversion webhook: fields that it lacks are lost. Find them with anykind check --round-trip", names[0])})
	}
	return r
}

// scope returns the scope of the samples, and a note if it is a guess.
func (k *sampled) scope(kind string) (scope v1.ResourceScope, guess string) {
	switch {
	case k.namespaced > 0:
		return v1.NamespaceScoped, ""
	case k.withoutNamespace > 0:
		return v1.ClusterScoped, ""
	case ofCluster(kind):
		return v1.ClusterScoped, "no sample has a namespace: the name of the kind suggests the scope Cluster (--scope)"
	}
	return v1.NamespaceScoped, "no sample has a namespace: the scope defaults to Namespaced (--scope)"
}
