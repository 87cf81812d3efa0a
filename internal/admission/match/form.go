package match

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
)

// A Form is one of the forms in which a write can be shown: the resource and version that was
// asked for, or an equivalent one.
type Form struct {
	Definition *resource.Definition
	Version    *resource.Version
	Resource   schema.GroupVersionResource
	Kind       schema.GroupVersionKind
	// Schema is that of the Kind, nil for options of a connection.
	Schema resource.Schema
	// fixed says that the kind is that of a subresource, and is the same in all forms.
	fixed bool
}

// Asked returns the form that the client has asked for.
func Asked(a *registry.Admission) *Form {
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

// forms returns the form that was asked for, and then the equivalent ones in the order in which
// Kubernetes knows them: the resources that store the same objects, in each of their versions that
// has the subresource. Of custom resources, versions that are not served count as well.
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

// sharing returns the Definitions that store the same objects as d, in the order of their groups.
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

// Exempt reports whether d is a kind of webhooks and policies. Those that are such objects
// themselves are never asked about them, because nobody could get rid of one that refuses
// everything.
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

// Virtual reports whether d is a kind of questions about users, of which nothing is stored. No
// webhook and no policy is asked about them, because everybody could be locked out.
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
