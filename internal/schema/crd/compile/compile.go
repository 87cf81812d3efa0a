// Package compile compiles a CustomResourceDefinition to a resource.Definition.
//
// It does as little as possible before the first use of a kind: schemas, rules and column paths are
// compiled when first needed, and dropped when idle. The package validates no definition and accepts
// no names. It does not know storage.
package compile

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/celrule"
	"github.com/anykind/anykind/internal/schema/conversion"
	"github.com/anykind/anykind/internal/schema/crd/conditions"
	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/structural"
)

// Positions of custom resources in discovery: after every built-in group, and equal in their group.
const groupPriority, versionPriority = 1000, 100

// names are the names of a kind, requested or accepted.
type names = v1.CustomResourceDefinitionNames

// A Compiler compiles CustomResourceDefinitions. Compile is for one goroutine.
type Compiler struct {
	// Conversion calls conversion webhooks. The zero value fails such conversions.
	Conversion Conversion
	// Shared has compiled parts of other definitions; nil shares nothing.
	Shared *Shared
}

// Shared has the common compiled schemas and rules of several definitions, also of several Compilers.
// It holds only weak references.
type Shared struct {
	schemas structural.Shared
	rules   *celrule.Shared
}

// NewShared returns an empty Shared.
func NewShared() *Shared { return &Shared{rules: celrule.NewShared()} }

// parts returns the shared parts, nil without a Shared.
func (s *Shared) parts() (*structural.Shared, *celrule.Shared) {
	if s == nil {
		return nil, nil
	}
	return &s.schemas, s.rules
}

// Schemas returns the schema of a version as JSON. It is called when the schema is
// first needed, and again after it was dropped.
type Schemas = conversion.Schemas

// Definition compiles a single CustomResourceDefinition. It does not change crd, and keeps only its
// schemas.
func Definition(crd *v1.CustomResourceDefinition) (*resource.Definition, error) {
	d, err := (&Compiler{}).Compile(crd, conversion.SchemasOf(crd))
	if err != nil {
		return nil, err
	}
	return resource.New(*d), nil
}

// Compile returns a Definition that serves the accepted names, and the requested ones before any
// decision. It reads no schema; consumers of a schema get it from schemas. The result is not complete
// until resource.New.
func (c *Compiler) Compile(crd *v1.CustomResourceDefinition, schemas Schemas) (*resource.Definition, error) {
	n := namesToServe(crd)
	switch {
	case crd.Spec.Group == "":
		return nil, fmt.Errorf("%s has no group", crd.Name)
	case n.Plural == "" || n.Singular == "" || n.Kind == "" || n.ListKind == "":
		return nil, fmt.Errorf("%s has not been given all of its names: plural %q, singular %q, kind %q, listKind %q",
			crd.Name, n.Plural, n.Singular, n.Kind, n.ListKind)
	case storageVersion(crd) == "":
		return nil, fmt.Errorf("%s has no storage version", crd.Name)
	}
	d := &resource.Definition{
		Group:         crd.Spec.Group,
		Plural:        n.Plural,
		Singular:      n.Singular,
		Kind:          n.Kind,
		ListKind:      n.ListKind,
		ShortNames:    n.ShortNames,
		Categories:    n.Categories,
		Namespaced:    crd.Spec.Scope == v1.NamespaceScoped,
		UID:           string(crd.UID),
		GroupPriority: groupPriority,
		StoragePrefix: resource.CustomPrefix(crd.Spec.Group, n.Plural),
		HasGeneration: true,
		Terminating:   crd.DeletionTimestamp != nil,
		Strategy:      resource.Strategy{Warn: resource.Looking(warnOfFinalizers)},
	}
	for i := range crd.Spec.Versions {
		d.Versions = append(d.Versions, c.version(crd, n, &crd.Spec.Versions[i], schemas))
		d.Versions[i].Columns = columns(crd.Spec.Versions[i].AdditionalPrinterColumns)
	}
	c.Conversion.add(d, crd, schemas)
	d.Order = slices.Clone(d.Versions)
	slices.SortStableFunc(d.Versions, func(a, b *resource.Version) int {
		return resource.CompareVersions(b.Name, a.Name)
	})
	return d, nil
}

// namesToServe returns the accepted names, or the requested ones before any decision.
func namesToServe(crd *v1.CustomResourceDefinition) names {
	if conditions.Find(&crd.Status, v1.NamesAccepted) != nil {
		return crd.Status.AcceptedNames
	}
	n := crd.Spec.Names
	if n.Singular == "" {
		n.Singular = strings.ToLower(n.Kind)
	}
	if n.ListKind == "" && n.Kind != "" {
		n.ListKind = n.Kind + "List"
	}
	return n
}

// storageVersion returns the name of the version objects are stored in, or "".
func storageVersion(crd *v1.CustomResourceDefinition) string {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return crd.Spec.Versions[i].Name
		}
	}
	return ""
}

// version returns the Version of a version of a CustomResourceDefinition, without its columns.
func (c *Compiler) version(crd *v1.CustomResourceDefinition, n names, in *v1.CustomResourceDefinitionVersion, schemas Schemas) *resource.Version {
	name := in.Name
	out := &resource.Version{
		Name:             name,
		Served:           in.Served,
		Storage:          in.Storage,
		Priority:         versionPriority,
		SelectableFields: compileSelectable(in.SelectableFields),
	}
	if crd.UID != "" && crd.Generation > 0 {
		out.Fingerprint = fmt.Sprintf("%s/%d", crd.UID, crd.Generation)
	}
	if in.Deprecated {
		out.Deprecated, out.DeprecationWarning = true, deprecation(crd, in)
	}
	kind := model.Kind{
		Group: crd.Spec.Group, Version: name,
		Kind: n.Kind, ListKind: n.ListKind, Plural: n.Plural,
		PreserveUnknownFields: crd.Spec.PreserveUnknownFields,
	}
	for _, f := range in.SelectableFields {
		kind.SelectableFields = append(kind.SelectableFields, f.JSONPath)
	}
	source := jsonschema.NewSource(func() ([]byte, error) { return schemas(name) })
	var scale *scaled
	if in.Subresources != nil && in.Subresources.Scale != nil {
		scale = newScaled(crd, in)
	}
	schemasOf, rulesOf := c.Shared.parts()
	out.Schema = versionSchema{schema.Stored(source, kind, schemasOf), celrule.Lazy(source.Props, rulesOf), scale}
	if in.Subresources != nil && in.Subresources.Status != nil {
		out.Revert, out.ResetFields = resource.Changing(keepStatus(out.Schema)), []string{"status"}
		out.Subresources = statusSubresource
	}
	if scale != nil {
		out.Subresources = append(slices.Clip(out.Subresources), scale.Subresource(out.Revert))
	}
	return out
}

// deprecation returns the warning of a deprecated version: its own, or one that names the best
// replacement.
func deprecation(crd *v1.CustomResourceDefinition, in *v1.CustomResourceDefinitionVersion) string {
	if in.DeprecationWarning != nil {
		return *in.DeprecationWarning
	}
	best := ""
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Served && !v.Deprecated && resource.CompareVersions(v.Name, in.Name) > 0 &&
			(best == "" || resource.CompareVersions(v.Name, best) > 0) {
			best = v.Name
		}
	}
	group, kind := crd.Spec.Group, crd.Spec.Names.Kind
	warning := fmt.Sprintf("%s/%s %s is deprecated", group, in.Name, kind)
	if best != "" {
		warning += fmt.Sprintf("; use %s/%s %s", group, best, kind)
	}
	return warning
}
