package celrule

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/objecttest"
)

// Kubernetes' documentation, section "Transition rules": the table of examples, each with a valid and
// an invalid update. New objects are always valid.
func TestTransitionExamples(t *testing.T) {
	for _, tt := range []struct {
		purpose, properties, at, rule string
		was, passes, fails            string
	}{{
		purpose:    "no direct transition between low and high",
		properties: `{p: {type: string, enum: [low, medium, high]}}`, at: "p",
		rule: `!(self == 'high' && oldSelf == 'low') && !(self == 'low' && oldSelf == 'high')`,
		was:  `{p: low}`, passes: `{p: medium}`, fails: `{p: high}`,
	}, {
		purpose:    "immutability",
		properties: `{spec: {type: object, properties: {foo: {type: integer}}}}`, at: "spec",
		rule: `self.foo == oldSelf.foo`,
		was:  `{spec: {foo: 1}}`, passes: `{spec: {foo: 1}, x: 1}`, fails: `{spec: {foo: 2}}`,
	}, {
		purpose:    "no modification once assigned",
		properties: `{p: {type: string}}`, at: "p",
		rule: `oldSelf != 'bar' || self == 'bar'`,
		was:  `{p: bar}`, passes: `{p: bar}`, fails: `{p: foo}`,
	}, {
		purpose:    "no removal once assigned",
		properties: `{spec: {type: object, properties: {field: {type: integer}}}}`, at: "spec",
		rule: `!has(oldSelf.field) || has(self.field)`,
		was:  `{spec: {field: 1}}`, passes: `{spec: {field: 2}}`, fails: `{spec: {}}`,
	}, {
		purpose:    "append-only set",
		properties: `{set: {type: array, maxItems: 10, x-kubernetes-list-type: set, items: {type: integer}}}`, at: "set",
		rule: `oldSelf.all(element, element in self)`,
		was:  `{set: [1, 2]}`, passes: `{set: [2, 3, 1]}`, fails: `{set: [2, 3]}`,
	}, {
		purpose:    "if it was X it can become A or B, not Y or Z",
		properties: `{p: {type: string}}`, at: "p",
		rule: `oldSelf != 'X' || self in ['A', 'B']`,
		was:  `{p: X}`, passes: `{p: A}`, fails: `{p: Y}`,
	}, {
		purpose:    "a counter that only grows",
		properties: `{count: {type: integer}}`, at: "count",
		rule: `self >= oldSelf`,
		was:  `{count: 2}`, passes: `{count: 2}`, fails: `{count: 1}`,
	}, {
		purpose: "elements of a map list, by their key",
		properties: `{list: {type: array, maxItems: 10, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {
			type: object, properties: {k: {type: string}, count: {type: integer}}, required: [k]}}}`, at: "list.items.count",
		rule: `self >= oldSelf`,
		was:  `{list: [{k: a, count: 1}, {k: b, count: 5}]}`, passes: `{list: [{k: b, count: 6}, {k: c, count: 0}, {k: a, count: 1}]}`, fails: `{list: [{k: b, count: 1}, {k: a, count: 5}]}`,
	}, {
		purpose:    "values of a map, by their key",
		properties: `{m: {type: object, maxProperties: 10, additionalProperties: {type: integer}}}`, at: "m.entries",
		rule: `self >= oldSelf`,
		was:  `{m: {a: 1, b: 5}}`, passes: `{m: {a: 1, b: 5, c: 0}}`, fails: `{m: {a: 5, b: 1}}`,
	}} {
		t.Run(tt.purpose, func(t *testing.T) {
			p := withRule(t, schemaOf(t, tt.properties), tt.at, apiextensionsv1.ValidationRule{Rule: tt.rule})
			accepted(t, p)
			for _, now := range []string{tt.was, tt.passes, tt.fails} {
				if errs := validate(t, p, now, ""); len(errs) > 0 {
					t.Errorf("create %s: %q", now, errs)
				}
			}
			if errs := validate(t, p, tt.passes, tt.was); len(errs) > 0 {
				t.Errorf("%s to %s: %q", tt.was, tt.passes, errs)
			}
			if errs := validate(t, p, tt.fails, tt.was); len(errs) != 1 {
				t.Errorf("%s to %s: %q, want one error", tt.was, tt.fails, errs)
			}
			// Without an old value, transition rules are skipped.
			if errs := validate(t, p, tt.fails, `{}`); len(errs) > 0 {
				t.Errorf("nothing to %s: %q", tt.fails, errs)
			}
		})
	}
}

// optionalOldSelf evaluates a rule on create too, with oldSelf as an optional.
func TestOptionalOldSelf(t *testing.T) {
	rule := apiextensionsv1.ValidationRule{Rule: `oldSelf.hasValue() ? self >= oldSelf.value() : self == 0`, OptionalOldSelf: new(true)}
	p := withRule(t, schemaOf(t, `{count: {type: integer}}`), "count", rule)
	accepted(t, p)
	for _, tt := range []struct {
		now, was string
		fails    bool
	}{
		{`{count: 0}`, "", false},
		{`{count: 1}`, "", true},
		{`{count: 1}`, `{count: 1}`, false},
		{`{count: 0}`, `{count: 1}`, true},
		{`{count: 1}`, `{}`, true},
	} {
		if errs := validate(t, p, tt.now, tt.was); len(errs) > 0 != tt.fails {
			t.Errorf("%q to %q: %q, should fail: %t", tt.was, tt.now, errs, tt.fails)
		}
	}
}

// A messageExpression speaks of oldSelf where a rule beside it does: of the value
// itself, also where the rule has an optional.
func TestOldSelfInMessages(t *testing.T) {
	const message = `oldSelf == 1 ? 'was one' : 'was another'`
	for _, tt := range []struct {
		what string
		all  []apiextensionsv1.ValidationRule
		want []string
	}{
		{"of a transition rule", []apiextensionsv1.ValidationRule{{Rule: `self == oldSelf`, MessageExpression: message}}, []string{`x: Invalid value: 2: was one`}},
		{"beside one", []apiextensionsv1.ValidationRule{{Rule: `self > 5`, MessageExpression: message}, {Rule: `self >= oldSelf`}}, []string{`x: Invalid value: 2: was one`}},
		{"without one", []apiextensionsv1.ValidationRule{{Rule: `self > 5`, MessageExpression: message}}, []string{`x: Invalid value: 2: failed rule: self > 5`}},
		{"of an optional", []apiextensionsv1.ValidationRule{{Rule: `oldSelf.hasValue() && self > 5`, OptionalOldSelf: new(true), MessageExpression: `oldSelf.hasValue() ? 'is old' : 'is new'`}},
			[]string{`x: Invalid value: 2: failed rule: oldSelf.hasValue() && self > 5`}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := schemaOf(t, `{x: {type: integer}}`)
			for _, r := range tt.all {
				withRule(t, p, "x", r)
			}
			if diff := cmp.Diff(tt.want, validate(t, p, `{x: 2}`, `{x: 1}`)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Transition rules are rejected where elements have no old values; uses of oldSelf are rejected
// outside transition rules.
func TestTransitionRefusals(t *testing.T) {
	const set = `{list: {type: array, maxItems: 5, x-kubernetes-list-type: set, items: {type: string, maxLength: 5}}}`
	const atomic = `{list: {type: array, maxItems: 5, items: {type: object, properties: {m: {
		type: array, maxItems: 5, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, required: [k], properties: {k: {type: string, maxLength: 5}}}}}}}}`
	for _, tt := range []struct {
		what, properties, at string
		rule                 apiextensionsv1.ValidationRule
		want                 []string
	}{
		{"an element of a set", set, "list.items", apiextensionsv1.ValidationRule{Rule: `self == oldSelf`}, []string{
			`schema.properties[list].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[list]`,
		}},
		{"anything inside of an atomic list", atomic, "list.items.m.items", apiextensionsv1.ValidationRule{Rule: `self == oldSelf`}, []string{
			`schema.properties[list].items.properties[m].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within schema.properties[list]`,
		}},
		{"optional, but not there", set, "list", apiextensionsv1.ValidationRule{Rule: `self.size() > 1`, OptionalOldSelf: new(true)}, []string{
			`schema.properties[list].x-kubernetes-validations[0].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`,
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := withRule(t, schemaOf(t, tt.properties), tt.at, tt.rule)
			if diff := cmp.Diff(tt.want, refusals(p)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// An update may keep an invalid value that did not change. The client gets a warning.
func TestRatcheting(t *testing.T) {
	p := schemaOf(t, `{spec: {type: object, properties: {
		a: {type: string}, b: {type: integer},
		list: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, properties: {k: {type: string}, count: {type: integer}}}},
		atomic: {type: array, items: {type: integer}}}}}`)
	for at, rule := range map[string]string{
		"spec.a": `self == 'right'`, "spec": `!has(self.b) || self.b > 0`, "spec.list.items": `self.count > 0`, "spec.atomic.items": `self > 0`,
	} {
		withRule(t, p, at, apiextensionsv1.ValidationRule{Rule: rule})
	}
	rules, err := New(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		what, was, now string
		errs, warnings int
	}{
		{"a field that stays wrong", `{spec: {a: wrong}}`, `{spec: {a: wrong, b: 1}}`, 0, 1},
		{"a field that becomes wrong otherwise", `{spec: {a: wrong}}`, `{spec: {a: worse}}`, 1, 0},
		{"an object that stays wrong", `{spec: {b: 0}}`, `{spec: {b: 0}}`, 0, 1},
		{"an object that stays wrong but changes", `{spec: {b: 0}}`, `{spec: {b: 0, a: right}}`, 1, 0},
		{"an element that moves", `{spec: {list: [{k: a, count: 0}, {k: b, count: 1}]}}`, `{spec: {list: [{k: b, count: 1}, {k: a, count: 0}]}}`, 0, 1},
		{"an element that is new", `{spec: {list: [{k: a, count: 0}]}}`, `{spec: {list: [{k: a, count: 0}, {k: b, count: 0}]}}`, 1, 1},
		{"a list that stays as it is", `{spec: {atomic: [0]}}`, `{spec: {atomic: [0], b: 1}}`, 0, 1},
		{"a list that changes elsewhere", `{spec: {atomic: [0]}}`, `{spec: {atomic: [0, 1]}}`, 1, 0},
	} {
		t.Run(tt.what, func(t *testing.T) {
			warnings := 0
			errs := rules.Validate(context.Background(), objecttest.Tree(t, tt.now), objecttest.Tree(t, tt.was), Options{Update: true, Warn: func(string) { warnings++ }})
			if len(errs) != tt.errs || warnings != tt.warnings {
				t.Errorf("%v and %d warnings, want %d errors and %d warnings", errs, warnings, tt.errs, tt.warnings)
			}
		})
	}
}
