// Package conversion converts objects between versions of their kind by the rules in files, for commands
// and as a webhook of other API servers.
//
// The files have CustomResourceDefinitions and their rules: CRDConversionConfigs, or the annotation of a
// definition.
package conversion

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

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

// Read reads definitions and rules. Rules that do not fit their definition are an error.
func Read(files Objects) (*Definitions, error) {
	out := &Definitions{byKind: map[schema.GroupKind]*resource.Definition{}}
	rules := map[string]object.Tree{}
	err := files.Each(func(t object.Tree) error {
		gv, _ := schema.ParseGroupVersion(object.APIVersion(t))
		switch {
		case gv.Group == crd.Group && object.Kind(t) == crd.Kind:
			d := &v1.CustomResourceDefinition{}
			if err := json.Unmarshal(object.AppendJSON(nil, t), d); err != nil {
				return err
			}
			out.all = slices.DeleteFunc(out.all, func(known *v1.CustomResourceDefinition) bool { return known.Name == d.Name })
			out.all = append(out.all, d)
		case object.Kind(t) == configKind:
			spec, _ := t["spec"].(object.Tree)
			target, _ := spec["targetCRD"].(object.Tree)
			name, _ := target["name"].(string)
			rules[name] = spec
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, d := range out.all {
		if spec, ok := rules[d.Name]; ok {
			if d.Annotations == nil {
				d.Annotations = map[string]string{}
			}
			d.Annotations[conversion.Annotation] = string(object.AppendJSON(nil, spec))
			delete(rules, d.Name)
		}
		if err := out.add(d); err != nil {
			return nil, err
		}
	}
	for name := range rules {
		return nil, fmt.Errorf("there are rules for the definition %q, but no such definition", name)
	}
	return out, nil
}

// configKind is the kind of rules.
const configKind = "CRDConversionConfig"

func (s *Definitions) add(d *v1.CustomResourceDefinition) error {
	report := conversion.CheckOf(d)
	if errs := append(report.Errors, report.Unmapped...); len(errs) > 0 {
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
		if gv, _ := schema.ParseGroupVersion(object.APIVersion(t)); gv.Group == crd.Group || object.Kind(t) == configKind {
			return nil
		}
		out, err := s.Convert(ctx, t, version)
		if err != nil {
			return err
		}
		return write(out)
	})
}
