package celrule

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

const hint = " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"

// The page, section "Resource use by validation functions": its examples.
func TestResourceUse(t *testing.T) {
	for _, tt := range []struct {
		what, properties, at, rule string
		refused                    bool
	}{
		{"contains in every string of a list", `{foo: {type: array, items: {type: string}}}`, "foo", `self.all(x, x.contains('a string'))`, true},
		{"the same with limits", `{foo: {type: array, maxItems: 25, items: {type: string, maxLength: 10}}}`, "foo", `self.all(x, x.contains('a string'))`, false},
		{"a rule of each element", `{foo: {type: array, maxItems: 25, items: {type: string, maxLength: 10}}}`, "foo.items", `self.contains('a string')`, false},
		{"a list of numbers", `{foo: {type: array, items: {type: integer}}}`, "foo", `self.all(x, x == 5)`, false},
		{"a list of lists of numbers", `{foo: {type: array, items: {type: array, items: {type: integer}}}}`, "foo.items", `self.all(x, x == 5)`, true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := withRule(t, schemaOf(t, tt.properties), tt.at, apiextensionsv1.ValidationRule{Rule: tt.rule})
			errs := refusals(p)
			if len(errs) > 0 != tt.refused {
				t.Errorf("%q, refused should be %t", errs, tt.refused)
			}
			want := "estimated rule cost exceeds budget by factor of more than 100x" + hint
			if tt.refused && !strings.HasSuffix(errs[0], want) {
				t.Errorf("%q, want %q", errs[0], want)
			}
		})
	}
}

func TestFactors(t *testing.T) {
	for cost, want := range map[uint64]string{
		10_500_000:  "1.050000x",
		15_000_000:  "1.5x",
		999_999_999: "100.0x",
		1 << 62:     "more than 100x",
	} {
		if got := tooExpensive("it", cost, RuleCostLimit); !strings.HasPrefix(got, "it exceeds budget by factor of "+want+" (") {
			t.Errorf("%d: %s", cost, got)
		}
	}
}

// All rules together may cost too much although none of them does.
func TestTotal(t *testing.T) {
	text := `{`
	for i := range 20 {
		text += fmt.Sprintf("f%02d: {type: array, items: {type: integer}, x-kubernetes-validations: [{rule: 'self.all(x, x == 5)'}]},", i)
	}
	p := schemaOf(t, text+`}`)
	report := Check(p, field.NewPath("schema"), CheckOptions{})
	got := words(report.Errors)
	if len(got) != 5 || !strings.HasPrefix(got[0], "schema.properties[f00].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total") ||
		!strings.HasPrefix(got[4], "schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of 1.258291x") {
		t.Errorf("%q", got)
	}
	for _, e := range report.TooExpensive() {
		e := e
		bounds := e.Bounds(e.Limit)
		if len(bounds) != 1 || bounds[0].Keyword != "maxItems" {
			t.Fatalf("%v: %v", e.Path, bounds)
		}
		name := e.Path.String()[len("schema.properties["):][:3]
		sub := p.Properties[name]
		sub.MaxItems = &bounds[0].Value
		p.Properties[name] = sub
	}
	accepted(t, p)
}

// With the bounds that are proposed for it a rule is accepted.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		properties, at, rule string
		want                 []string
	}{
		{`{foo: {type: array, items: {type: string}}}`, "foo", `self.all(x, x.contains('a string'))`,
			[]string{"schema.properties[foo]: maxItems: 4096", "schema.properties[foo].items: maxLength: 4096"}},
		{`{foo: {type: array, items: {type: array, items: {type: integer}}}}`, "foo.items", `self.all(x, x == 5)`,
			[]string{"schema.properties[foo]: maxItems: 1024", "schema.properties[foo].items: maxItems: 1024"}},
		{`{foo: {type: object, additionalProperties: {type: object, properties: {a-b: {type: array, items: {type: string}}}}}}`, "foo.entries", `self.a__dash__b.all(x, x.matches('^[a-z]*$'))`,
			[]string{"schema.properties[foo]: maxProperties: 200", "schema.properties[foo].additionalProperties.properties[a-b]: maxItems: 200", "schema.properties[foo].additionalProperties.properties[a-b].items: maxLength: 200"}},
		// Existing limits stay, and values without influence are not named.
		{`{foo: {type: array, maxItems: 100, items: {type: string}}, bar: {type: string}}`, "", `self.foo.all(x, x.contains('a string'))`,
			[]string{"schema.properties[foo].items: maxLength: 100000"}},
		// The result of a filter has no limits.
		{`{foo: {type: array, maxItems: 5, items: {type: object, properties: {v: {type: string, maxLength: 5}}}}}`, "", `self.foo.filter(x, true).all(x, x.v.matches('a*'))`, nil},
	} {
		t.Run(tt.rule, func(t *testing.T) {
			p := withRule(t, schemaOf(t, tt.properties), tt.at, apiextensionsv1.ValidationRule{Rule: tt.rule})
			expensive := Check(p, field.NewPath("schema"), CheckOptions{}).TooExpensive()
			if len(expensive) != 1 {
				t.Fatalf("%d rules are too expensive, want one", len(expensive))
			}
			var got []string
			for _, b := range expensive[0].Bounds(expensive[0].Limit) {
				got = append(got, fmt.Sprintf("%s: %s: %d", b.Path, b.Keyword, b.Value))
			}
			slices.Sort(got)
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// A stored rule may keep its cost, and may use features that an older server does not understand.
func TestStored(t *testing.T) {
	costly := withRule(t, schemaOf(t, `{foo: {type: array, items: {type: array, items: {type: integer}}}}`), "foo.items",
		apiextensionsv1.ValidationRule{Rule: `self.all(x, x == 5)`})
	report := Check(costly, field.NewPath("schema"), CheckOptions{AnyRuleCost: true})
	if got := words(report.Errors); len(got) != 2 || !strings.Contains(got[0], "contributed to") {
		t.Errorf("%q, want only that all together cost too much", got)
	}
	new := withRule(t, schemaOf(t, `{foo: {type: array, maxItems: 5, items: {type: integer}}}`), "foo",
		apiextensionsv1.ValidationRule{Rule: `self.includes(1)`})
	if got := refusals(new); len(got) != 1 || !strings.Contains(got[0], "undeclared reference to 'includes'") {
		t.Errorf("%q", got)
	}
	report = Check(new, field.NewPath("schema"), CheckOptions{Stored: func(rule string) bool { return rule == `self.includes(1)` }})
	if len(report.Errors) > 0 {
		t.Error(report.Errors)
	}
}

// Evaluations end within the budget, for any object.
func TestBudgets(t *testing.T) {
	long := map[string]any{"foo": strings.Repeat("a", 20_000)}
	squared := apiextensionsv1.ValidationRule{Rule: `self.contains(self)`, Message: "square"}
	never := apiextensionsv1.ValidationRule{Rule: `self == ''`}
	validate := func(p *apiextensionsv1.JSONSchemaProps, obj map[string]any, budget int64) []string {
		rules, err := New(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		return words(rules.Validate(context.Background(), obj, nil, Options{Budget: budget}))
	}

	p := withRule(t, withRule(t, schemaOf(t, `{foo: {type: string}}`), "foo", squared), "foo", never)
	got := validate(p, long, 0)
	want := []string{`foo: Invalid value: "string": 'operation cancelled: actual cost limit exceeded': no further validation rules will be run due to call cost exceeds limit for rule: square`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one expression (-want +got)\n%s", diff)
	}

	texts := make([]any, 20)
	for i := range texts {
		texts[i] = strings.Repeat("a", 1000) // each costs 10,000
	}
	p = withRule(t, withRule(t, schemaOf(t, `{foo: {type: array, items: {type: string}}}`), "foo.items", squared), "", apiextensionsv1.ValidationRule{Rule: `true`})
	got = validate(p, map[string]any{"foo": texts}, 100_000)
	want = []string{`foo[9]: Invalid value: "string": ` + outOfBudget}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("one object (-want +got)\n%s", diff)
	}

	costly := never
	costly.MessageExpression = `self.contains(self) ? 'a' : 'b'`
	p = withRule(t, withRule(t, schemaOf(t, `{foo: {type: string}}`), "foo", costly), "foo", never)
	got = validate(p, long, 0)
	want = []string{`foo: Invalid value: "string": no further validation rules will be run due to call cost exceeds limit for messageExpression: "self.contains(self) ? 'a' : 'b'"`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("a message (-want +got)\n%s", diff)
	}
}

// Expressions made to take long are rejected early.
func TestExpressionBombs(t *testing.T) {
	nested := `self`
	for range 40 {
		nested = `[` + nested + `].map(x, x)`
	}
	for name, rule := range map[string]string{
		"nested brackets":  strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000),
		"nested lists":     strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + ` == []`,
		"a long sum":       strings.Repeat("1 + ", 50000) + "1 > 0",
		"a long chain":     "self" + strings.Repeat(".a", 40000) + " == 1",
		"many errors":      strings.Repeat("? ", 40000),
		"negations":        strings.Repeat("!", 60001) + "true",
		"nested macros":    nested + ` == []`,
		"a huge text":      `'` + strings.Repeat("a", 200_000) + `' == 'a'`,
		"macros in macros": strings.Repeat(`[1, 2, 3].all(x, `, 12) + "true" + strings.Repeat(")", 12),
	} {
		t.Run(name, func(t *testing.T) {
			p := withRule(t, schemaOf(t, `{x: {type: integer}}`), "x", apiextensionsv1.ValidationRule{Rule: rule})
			if errs := refusals(p); !slices.Contains([]string{"negations", "nested macros", "macros in macros"}, name) && len(errs) == 0 {
				t.Error("accepted")
			}
		})
	}
}
