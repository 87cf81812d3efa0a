package match

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

// A Form is a resource and version in which a write can be presented: the requested one, or an
// equivalent one.
type Form struct {
	Definition *resource.Definition
	Version    *resource.Version
	Resource   schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	// Schema is the schema of the Kind, nil for options of a connection.
	Schema resource.Schema
	// fixed is true for a kind of a subresource, which is the same in all forms.
	fixed bool
}

// RequestForm returns the form of the client's request.
func RequestForm(a *registry.Admission) *Form {
	return newForm(a.Target.Definition, a.Target.Version, a.Target.Subresource)
}

func newForm(d *resource.Definition, v *resource.Version, subresource string) *Form {
	f := &Form{
		Definition: d, Version: v,
		Resource: schema.GroupVersionResource{Group: d.Group, Version: v.Name, Resource: d.Plural},
		Kind:     d.GroupVersionKind(v.Name),
		Schema:   v.Schema,
	}
	if s := v.Subresource(subresource); s != nil && !s.Kind.Empty() {
		f.Kind, f.Schema, f.fixed = s.Kind, nil, true
		if s.Definition != nil {
			f.Schema = s.Definition.StorageVersion().Schema
		}
	}
	return f
}

// forms returns the requested form, and then the equivalent forms in Kubernetes' order: the
// resources that store the same objects, in each of their versions that has the subresource. Custom
// resources also count in versions that are not served.
func forms(set *resource.Set, d *resource.Definition, v *resource.Version, subresource string) []*Form {
	all := []*Form{newForm(d, v, subresource)}
	for _, other := range sharing(set, d) {
		for _, known := range other.Listed() {
			if known != v && (known.Served || d.UID != "") && (subresource == "" || known.Subresource(subresource) != nil) {
				all = append(all, newForm(other, known, subresource))
			}
		}
	}
	return all
}

// sharing returns the Definitions that store the same objects as d, sorted by group.
func sharing(set *resource.Set, d *resource.Definition) (all []*resource.Definition) {
	if d.UID != "" {
		return []*resource.Definition{d}
	}
	for _, group := range set.Groups() {
		for _, other := range group.Definitions {
			if other.StoragePrefix == d.StoragePrefix && other.UID == "" {
				all = append(all, other)
			}
		}
	}
	return all
}

// Exempt reports whether d is a kind of webhook configurations or policies. Webhooks and policies
// are not called for those kinds: a webhook that rejects everything could not be deleted.
func Exempt(d *resource.Definition) bool {
	if d.Group != "admissionregistration.k8s.io" {
		return false
	}
	switch d.Kind {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding":
		return true
	}
	return false
}

// Virtual reports whether d is a kind of access reviews, which are not stored. Webhooks and
// policies are not called for those kinds: they could lock out all users.
func Virtual(d *resource.Definition) bool {
	switch d.Group {
	case "authentication.k8s.io":
		return d.Plural == "selfsubjectreviews" || d.Plural == "tokenreviews"
	case "authorization.k8s.io":
		switch d.Plural {
		case "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews":
			return true
		}
	}
	return false
}
