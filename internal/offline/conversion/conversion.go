// Package conversion converts objects between versions of their kind by the rules in files, for commands
// and as a webhook of other API servers.
//
// The files have CustomResourceDefinitions and their rules: CRDConversionConfigs, or the annotation of a
// definition.
package conversion

import (
	"context"
	"fmt"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/conversion"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/schema/crd/compile"
)

// Definitions are the definitions of files with their rules.
type Definitions struct {
	all      []*v1.CustomResourceDefinition
	byKind   map[schema.GroupKind]*resource.Definition
	warnings []string
}

// Objects are the objects of files.
type Objects interface {
	Each(visit func(object.Tree) error) error
}

// New checks definitions and their rules. Rules that do not fit their definition are an error.
func New(all []*v1.CustomResourceDefinition) (*Definitions, error) {
	out := &Definitions{all: all, byKind: map[schema.GroupKind]*resource.Definition{}}
	for _, d := range all {
		if err := out.add(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Definitions) add(d *v1.CustomResourceDefinition) error {
	report := conversion.CheckOf(d)
	if errs := report.Refused(); len(errs) > 0 {
		return fmt.Errorf("the rules of %s are not valid: %w", d.Name, errs.ToAggregate())
	}
	for _, w := range report.Warnings {
		s.warnings = append(s.warnings, d.Name+": "+w)
	}
	compiled, err := compile.Definition(d)
	if err != nil {
		return err
	}
	s.byKind[schema.GroupKind{Group: compiled.Group, Kind: compiled.Kind}] = compiled
	return nil
}

// Warnings returns the warnings about rules.
func (s *Definitions) Warnings() []string { return s.warnings }

// WithRules returns the definitions that have rules.
func (s *Definitions) WithRules() (out []*v1.CustomResourceDefinition) {
	for _, d := range s.all {
		if _, ok := d.Annotations[conversion.Annotation]; ok {
			out = append(out, d)
		}
	}
	return out
}

// Convert returns an object in another version of its kind, as a server shows it.
func (s *Definitions) Convert(ctx context.Context, t object.Tree, version string) (object.Tree, error) {
	gv, err := schema.ParseGroupVersion(object.APIVersion(t))
	if err != nil {
		return nil, err
	}
	d := s.byKind[schema.GroupKind{Group: gv.Group, Kind: object.Kind(t)}]
	if d == nil {
		return nil, fmt.Errorf("there is no definition of %s %s among the files", object.APIVersion(t), object.Kind(t))
	}
	v := d.Version(version)
	if v == nil || d.Version(gv.Version) == nil {
		missing := version
		if v != nil {
			missing = gv.Version
		}
		return nil, fmt.Errorf("%s has no version %q", d.GroupResource(), missing)
	}
	t = object.CloneTree(t)
	object.Metadata(t) // webhooks and rules find one
	return registry.Convert(ctx, d, v, t)
}

// All converts objects and calls write for each result. Definitions and rules are skipped.
func (s *Definitions) All(ctx context.Context, files Objects, version string, write func(object.Tree) error) error {
	return files.Each(func(t object.Tree) error {
		if gv, _ := schema.ParseGroupVersion(object.APIVersion(t)); gv.Group == crd.Group || conversion.IsConfig(t) {
			return nil
		}
		out, err := s.Convert(ctx, t, version)
		if err != nil {
			return err
		}
		return write(out)
	})
}
