// Package changes compares the findings of anykind crd diff for the definitions of two releases with
// those of the published crdify, and tests both with objects.
//
// A module of its own keeps the requirements of crdify away from the others. For each finding it makes
// objects of the old schema that have the field, and validates them with a server in memory before and
// after the change. An object that is rejected or changed only after the change confirms the finding.
package changes

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/crdify/pkg/config"
	"sigs.k8s.io/crdify/pkg/runner"

	"github.com/anykind/anykind/internal/offline/check"
	"github.com/anykind/anykind/internal/schema/crd/change"
	"github.com/anykind/anykind/test/program"
)

// A pair is a folder of definitions in two releases of a module.
type pair struct{ module, was, is string }

func pairs() []pair {
	return []pair{
		{"github.com/cert-manager/cert-manager", "deploy/crds", "deploy/crds"},
		{"github.com/external-secrets/external-secrets", "config/crds/bases", "config/crds/bases"},
		{"sigs.k8s.io/cluster-api", "config/crd/bases", "core/config/crd/bases"},
		{"sigs.k8s.io/gateway-api", "config/crd/experimental", "config/crd/experimental"},
		{"sigs.k8s.io/gateway-api", "config/crd/standard", "config/crd/standard"},
		{"sigs.k8s.io/karpenter", "pkg/apis/crds", "pkg/apis/crds"},
	}
}

// definitions returns the definitions of both releases.
func (p pair) definitions() (old, now []*v1.CustomResourceDefinition, err error) {
	earlier, err := program.Published("test/changes/earlier", p.module)
	if err != nil {
		return nil, nil, err
	}
	later, err := program.Published("test/operators/published", p.module)
	if err != nil {
		return nil, nil, err
	}
	if old, err = check.Definitions([]string{filepath.Join(earlier[p.module].Dir, p.was)}, nil); err != nil {
		return nil, nil, err
	}
	now, err = check.Definitions([]string{filepath.Join(later[p.module].Dir, p.is)}, nil)
	return old, now, err
}

// A place is a field of a version, in the notation of crdify.
type place struct{ version, field string }

// ours returns the places with a breaking change by crd diff.
func ours(findings []change.Finding) map[place][]change.Finding {
	all := map[place][]change.Finding{}
	for _, f := range findings {
		if f.Severity != change.Breaking || f.Version == "" || strings.Contains(f.Change, "version") || strings.Contains(f.Change, "subresource") || f.Change == "selectable-field-removed" {
			continue
		}
		path := f.Path
		if f.Change == "field-required" { // crdify reports it for the parent object
			path = strings.TrimSuffix(path[:max(0, strings.LastIndex(path, "."))], ".")
		}
		p := place{f.Version, fieldOf(path)}
		all[p] = append(all[p], f)
	}
	return all
}

func fieldOf(path string) string {
	path = strings.NewReplacer("[]", ".items", "[*]", ".additionalProperties").Replace(path)
	return strings.TrimSuffix("^."+path, ".")
}

// theirs returns the places with an error by crdify: from one of its checks, or because it has no
// check for the difference.
func theirs(old, now *v1.CustomResourceDefinition) (known, unhandled map[place]string, err error) {
	c := &config.Config{Validations: []config.ValidationConfig{{Name: "description", Enforcement: config.EnforcementPolicyNone}}, UnhandledEnforcement: config.EnforcementPolicyError, Conversion: config.ConversionPolicyIgnore}
	r, err := runner.New(c, runner.DefaultRegistry())
	if err != nil {
		return nil, nil, err
	}
	known, unhandled = map[place]string{}, map[place]string{}
	found := r.Run(old, now)
	for _, v := range found.SameVersionValidation {
		for _, p := range v.PropertyComparisons {
			for _, c := range p.ComparisonResults {
				switch {
				case len(c.Errors) == 0:
				case c.Name == "unhandled":
					unhandled[place{v.Version, p.Property}] = strings.Join(c.Errors, "; ")
				default:
					known[place{v.Version, p.Property}] = c.Name + ": " + strings.Join(c.Errors, "; ")
				}
			}
		}
	}
	for _, c := range found.CRDValidation {
		for _, text := range c.Errors { // of a removed field: MESSAGE : VERSION.^.FIELD
			_, at, ok := strings.Cut(text, " : ")
			version, field, found := strings.Cut(at, ".^")
			if c.Name == "existingFieldRemoval" && ok && found {
				known[place{version, "^" + field}] = c.Name
			}
		}
	}
	return known, unhandled, nil
}

// candidates returns values of a schema, including its limits and those of another schema.
func candidates(a, b *v1.JSONSchemaProps) (all []any) {
	add := func(v ...any) { all = append(all, v...) }
	for _, s := range []*v1.JSONSchemaProps{a, b} {
		if s == nil {
			continue
		}
		for _, e := range s.Enum {
			var v any
			if json.Unmarshal(e.Raw, &v) == nil {
				add(v)
			}
		}
		for _, n := range []*float64{s.Minimum, s.Maximum} {
			if n != nil {
				add(int64(*n)-1, int64(*n), int64(*n)+1)
			}
		}
		for _, n := range []*int64{s.MinLength, s.MaxLength} {
			if n != nil && *n < 10000 {
				add(strings.Repeat("a", int(max(0, *n-1))), strings.Repeat("a", int(*n)), strings.Repeat("a", int(*n)+1))
			}
		}
		for _, n := range []*int64{s.MinItems, s.MaxItems} {
			for _, length := range []int64{-1, 0, 1} {
				if n != nil && *n+length >= 0 && *n < 200 && a.Items != nil {
					add(listOf(a, int(*n+length)))
				}
			}
		}
		for _, n := range []*int64{s.MinProperties, s.MaxProperties} {
			for _, size := range []int64{-1, 0, 1} {
				if n != nil && *n+size >= 0 && *n < 200 && a.AdditionalProperties != nil {
					add(mapOf(a, int(*n+size)))
				}
			}
		}
	}
	switch a.Type {
	case "string":
		add("a", "", "A_b", "example.com", "/a", "10s", "1", "https://example.com", "a b", "Xx", "*.example.com", "é", "example.com/a", "a.b/c")
	case "integer":
		add(int64(0), int64(1), int64(-1), int64(80), int64(1<<40))
	case "boolean":
		add(true, false)
	case "array":
		add(listOf(a, 0), listOf(a, 1), listOf(a, 2))
	case "object":
		add(map[string]any{}, sample(a))
		if a.AdditionalProperties != nil {
			add(mapOf(a, 1))
		}
	}
	return append(all, sample(a))
}

func listOf(p *v1.JSONSchemaProps, n int) []any {
	list := make([]any, 0, n)
	for i := range n {
		v := sample(p.Items.Schema)
		if t, ok := v.(map[string]any); ok {
			for _, key := range p.XListMapKeys {
				if k := p.Items.Schema.Properties[key]; k.Type == "string" && len(k.Enum) == 0 {
					t[key] = fmt.Sprintf("a%d", i)
				}
			}
		} else if s, ok := v.(string); ok && p.Items.Schema.Enum == nil {
			v = fmt.Sprintf("%s%d", s, i)
		}
		list = append(list, v)
	}
	return list
}

func mapOf(p *v1.JSONSchemaProps, n int) map[string]any {
	m := map[string]any{}
	for i := range n {
		m[fmt.Sprintf("key%d", i)] = sample(p.AdditionalProperties.Schema)
	}
	return m
}

// sample returns a small value of a schema, valid in simple cases.
func sample(p *v1.JSONSchemaProps) any {
	switch {
	case p == nil:
		return "a"
	case len(p.Enum) > 0:
		var v any
		_ = json.Unmarshal(p.Enum[0].Raw, &v)
		return v
	case p.Default != nil:
		var v any
		_ = json.Unmarshal(p.Default.Raw, &v)
		return v
	}
	switch p.Type {
	case "object":
		m := map[string]any{}
		for _, name := range p.Required {
			below := p.Properties[name]
			m[name] = sample(&below)
		}
		return m
	case "array":
		if p.MinItems != nil {
			return listOf(p, int(*p.MinItems))
		}
		return []any{}
	case "integer", "number":
		if p.Minimum != nil {
			return int64(*p.Minimum)
		}
		return int64(1)
	case "boolean":
		return true
	}
	if p.MinLength != nil && *p.MinLength > 1 {
		return strings.Repeat("a", int(*p.MinLength))
	}
	return "a"
}

// schemaAt returns the schema at a place, or nil.
func schemaAt(p *v1.JSONSchemaProps, steps []string) *v1.JSONSchemaProps {
	for _, step := range steps {
		switch {
		case p == nil:
			return nil
		case step == "items" && p.Items != nil:
			p = p.Items.Schema
		case step == "additionalProperties" && p.AdditionalProperties != nil:
			p = p.AdditionalProperties.Schema
		default:
			below, ok := p.Properties[step]
			if !ok {
				return nil
			}
			p = &below
		}
	}
	return p
}

// with returns a value of a schema with leaf at a place.
func with(p *v1.JSONSchemaProps, steps []string, leaf any) any {
	if len(steps) == 0 || p == nil {
		return leaf
	}
	switch below := schemaAt(p, steps[:1]); {
	case steps[0] == "items" && p.Items != nil:
		return []any{with(below, steps[1:], leaf)}
	case steps[0] == "additionalProperties" && p.AdditionalProperties != nil:
		return map[string]any{"key": with(below, steps[1:], leaf)}
	default:
		m, _ := sample(p).(map[string]any)
		if m == nil {
			m = map[string]any{}
		}
		m[steps[0]] = with(below, steps[1:], leaf)
		return m
	}
}

// stepsOf returns the steps to a place.
func stepsOf(p place) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimPrefix(p.field, "^"), "."), func(s string) bool { return s == "" })
}
