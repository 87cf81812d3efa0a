// Package change finds the effects of a new CustomResourceDefinition in place of an old one on users
// of its objects.
//
// It compares the two and knows the effect of each difference on stored objects and clients: rejected,
// dropped or defaulted fields, whether ratcheting permits them, and the preparations for the change.
// It does not read objects.
package change

import (
	"cmp"
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/order"
)

// A Severity is the severity of a change.
type Severity string

// The severities.
const (
	// Breaking changes make valid objects invalid, or lose data.
	Breaking Severity = "breaking"
	// Caution marks changes that may alter the behaviour of objects or clients.
	Caution Severity = "caution"
	// Safe changes restrict nothing.
	Safe Severity = "safe"
)

// Severities returns all, the worst first.
func Severities() []Severity { return []Severity{Breaking, Caution, Safe} }

// Ratcheting tells whether objects made invalid by a change can still be updated.
type Ratcheting string

// Effects of ratcheting.
const (
	// Saves objects whose value stays: writes of other fields are accepted.
	Saves Ratcheting = "saves"
	// SavesUnchanged: the object is valid as long as the object around the value does not change.
	SavesUnchanged Ratcheting = "saves while all around it stays"
	// NeverSaves: every write of such an object is rejected.
	NeverSaves Ratcheting = "never saves"
)

// A Finding is one difference and its effect.
type Finding struct {
	Severity Severity `json:"severity"`
	// Version of the kind and Path of the schema, if the finding concerns one.
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	// Change names the kind of the change, and What describes it with its values.
	Change string `json:"change"`
	What   string `json:"what"`
	// Reason explains the effect, in a sentence, and WayOut the preparation.
	Reason     string     `json:"reason,omitempty"`
	WayOut     string     `json:"wayOut,omitempty"`
	Ratcheting Ratcheting `json:"ratcheting,omitempty"`
}

// Compare returns the differences between two definitions of one kind, the worst first.
func Compare(old, now *v1.CustomResourceDefinition) []Finding {
	c := &comparison{}
	c.names(old, now)
	c.versions(old, now)
	c.conversion(old, now)
	for i := range old.Spec.Versions {
		was := &old.Spec.Versions[i]
		if is := versionOf(now, was.Name); is != nil {
			c.version = was.Name
			c.behaviour(was, is)
			if was.Schema != nil && is.Schema != nil {
				c.schema("", was.Schema.OpenAPIV3Schema, is.Schema.OpenAPIV3Schema)
			}
		}
	}
	rank := func(f Finding) int { return slices.Index(Severities(), f.Severity) }
	order.Stable(c.found, func(a, b Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return c.found
}

// Worst is the severity of the worst finding; Safe if there is none.
func Worst(all []Finding) Severity {
	if len(all) == 0 {
		return Safe
	}
	return all[0].Severity
}

// A comparison collects findings.
type comparison struct {
	version string // that is compared
	found   []Finding
}

func (c *comparison) add(f Finding) {
	f.Version = cmp.Or(f.Version, c.version)
	c.found = append(c.found, f)
}

func versionOf(d *v1.CustomResourceDefinition, name string) *v1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Name == name {
			return &d.Spec.Versions[i]
		}
	}
	return nil
}

func storageOf(d *v1.CustomResourceDefinition) *v1.CustomResourceDefinitionVersion {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Storage {
			return &d.Spec.Versions[i]
		}
	}
	return nil
}

// names compares the names and the scope of a kind.
func (c *comparison) names(old, now *v1.CustomResourceDefinition) {
	a, b := &old.Spec, &now.Spec
	for _, f := range []struct{ change, field, was, is string }{
		{"group", "spec.group", a.Group, b.Group},
		{"scope", "spec.scope", string(a.Scope), string(b.Scope)},
		{"kind", "spec.names.kind", a.Names.Kind, b.Names.Kind},
		{"plural", "spec.names.plural", a.Names.Plural, b.Names.Plural},
	} {
		if f.was != f.is {
			c.add(Finding{Severity: Breaking, Path: f.field, Change: f.change + "-changed", What: fmt.Sprintf("%s changes from %s to %s", f.change, f.was, f.is),
				Reason: "The server rejects the change: the field is immutable.",
				WayOut: "Create a definition with another name, and move the objects."})
		}
	}
	for _, name := range a.Names.ShortNames {
		if !slices.Contains(b.Names.ShortNames, name) {
			c.add(Finding{Severity: Caution, Path: "spec.names.shortNames", Change: "short-name-removed", What: fmt.Sprintf("the short name %s is removed", name),
				Reason: "Scripts with the short name fail."})
		}
	}
	if a.PreserveUnknownFields && !b.PreserveUnknownFields {
		c.add(Finding{Severity: Breaking, Path: "spec.preserveUnknownFields", Change: "unknown-fields-dropped", What: "unknown fields are no longer preserved",
			Reason: "Fields without a schema are pruned from reads, and removed by the next write of each object.",
			WayOut: "Add the fields to the schema first, or set x-kubernetes-preserve-unknown-fields at their parents."})
	}
}

// versions compares which versions there are.
func (c *comparison) versions(old, now *v1.CustomResourceDefinition) {
	for i := range old.Spec.Versions {
		v := &old.Spec.Versions[i]
		is := versionOf(now, v.Name)
		switch {
		case is == nil && (v.Storage || slices.Contains(old.Status.StoredVersions, v.Name)):
			c.add(Finding{Severity: Breaking, Version: v.Name, Change: "stored-version-removed", What: "a stored version is removed",
				Reason: "The server rejects the removal while status.storedVersions has the version: the objects would be unreadable.",
				WayOut: "Make another version the storage version, rewrite the objects (anykind migrate " + now.Spec.Names.Plural + "), and only then remove it."})
		case is == nil:
			c.add(Finding{Severity: Breaking, Version: v.Name, Change: "version-removed", What: "the version is removed",
				Reason: "Requests for the version return 404, and files with the version can no longer be applied.",
				WayOut: "Mark it as deprecated first, and move clients and files to another version."})
		case v.Served && !is.Served:
			c.add(Finding{Severity: Breaking, Version: v.Name, Change: "version-not-served", What: "the version is no longer served",
				Reason: "Requests for the version return 404, and files with the version can no longer be applied.",
				WayOut: "Mark it as deprecated first, and move clients and files to another version."})
		case !v.Deprecated && is.Deprecated:
			c.add(Finding{Severity: Caution, Version: v.Name, Change: "version-deprecated", What: "the version is deprecated", Reason: "Clients get a warning with each response."})
		}
	}
	for i := range now.Spec.Versions {
		if v := &now.Spec.Versions[i]; versionOf(old, v.Name) == nil {
			c.add(Finding{Severity: Safe, Version: v.Name, Change: "version-added", What: "the version is new"})
		}
	}
	was, is := storageOf(old), storageOf(now)
	if was != nil && is != nil && was.Name != is.Name {
		c.add(Finding{Severity: Caution, Change: "storage-version-changed", What: fmt.Sprintf("objects are stored in %s instead of %s", is.Name, was.Name),
			Reason: "Stored objects keep their version until the next write, and are converted on each read.",
			WayOut: "Rewrite them: anykind migrate " + now.Spec.Names.Plural + "."})
	}
}

// behaviour compares versions except for their schemas.
func (c *comparison) behaviour(was, is *v1.CustomResourceDefinitionVersion) {
	a, b := subresources(was), subresources(is)
	switch {
	case a.Status == nil && b.Status != nil:
		c.add(Finding{Severity: Breaking, Path: "subresources.status", Change: "status-subresource-added", What: "status becomes a subresource",
			Reason: "Writes of the object ignore changes of status: controllers have to write /status.",
			WayOut: "Change controllers to write /status at the same time."})
	case a.Status != nil && b.Status == nil:
		c.add(Finding{Severity: Breaking, Path: "subresources.status", Change: "status-subresource-removed", What: "status is no longer a subresource",
			Reason: "Requests to /status return 404, and writes of the object change status, too.",
			WayOut: "Change controllers to write the object at the same time."})
	}
	switch {
	case a.Scale == nil && b.Scale != nil:
		c.add(Finding{Severity: Safe, Path: "subresources.scale", Change: "scale-subresource-added", What: "scale becomes a subresource"})
	case a.Scale != nil && b.Scale == nil:
		c.add(Finding{Severity: Breaking, Path: "subresources.scale", Change: "scale-subresource-removed", What: "scale is no longer a subresource",
			Reason: "kubectl scale and autoscalers fail.", WayOut: "Keep it."})
	case a.Scale != nil && (a.Scale.SpecReplicasPath != b.Scale.SpecReplicasPath || a.Scale.StatusReplicasPath != b.Scale.StatusReplicasPath):
		c.add(Finding{Severity: Caution, Path: "subresources.scale", Change: "scale-subresource-changed", What: "scale reads or writes other fields",
			Reason: "Autoscalers change other fields than before."})
	}
	for _, f := range was.SelectableFields {
		if !slices.Contains(is.SelectableFields, f) {
			c.add(Finding{Severity: Breaking, Path: "selectableFields", Change: "selectable-field-removed", What: fmt.Sprintf("%s can no longer be selected", f.JSONPath),
				Reason: "Lists and watches with a field selector for it are rejected.", WayOut: "Keep it until no client uses it."})
		}
	}
}

func subresources(v *v1.CustomResourceDefinitionVersion) v1.CustomResourceSubresources {
	if v.Subresources == nil {
		return v1.CustomResourceSubresources{}
	}
	return *v.Subresources
}
