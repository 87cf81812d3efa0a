package celrule

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Kubernetes' documentation, section "The messageExpression field", and the effect of reason and
// fieldPath on an error.
func TestMessages(t *testing.T) {
	const properties = `{spec: {type: object, properties: {x: {type: integer}, maxLimit: {type: integer}, name: {type: string}, m: {type: object, additionalProperties: {type: integer}}}}}`
	reason := func(r apiextensionsv1.FieldValueErrorReason) *apiextensionsv1.FieldValueErrorReason { return &r }
	for _, tt := range []struct {
		what string
		rule apiextensionsv1.ValidationRule
		want string
	}{
		{"no message", apiextensionsv1.ValidationRule{}, `spec: Invalid value: failed rule: self.x <= self.maxLimit`},
		{"a message", apiextensionsv1.ValidationRule{Message: " too much "}, `spec: Invalid value: too much`},
		{"a message that is computed", apiextensionsv1.ValidationRule{Message: "too much", MessageExpression: `"x exceeded max limit of " + string(self.maxLimit)`}, `spec: Invalid value: x exceeded max limit of 1`},
		{"an error instead", apiextensionsv1.ValidationRule{Message: "too much", MessageExpression: `string(1 / (self.maxLimit - 1))`}, `spec: Invalid value: too much`},
		{"an error and no message", apiextensionsv1.ValidationRule{MessageExpression: `string(1 / (self.maxLimit - 1))`}, `spec: Invalid value: failed rule: self.x <= self.maxLimit`},
		{"nothing", apiextensionsv1.ValidationRule{Message: "too much", MessageExpression: `" "`}, `spec: Invalid value: too much`},
		{"two lines", apiextensionsv1.ValidationRule{Message: "too much", MessageExpression: `"a\nb"`}, `spec: Invalid value: too much`},
		{"too long a text", apiextensionsv1.ValidationRule{Message: "too much", MessageExpression: `"` + strings.Repeat("a", 5<<10) + `b"`}, `spec: Invalid value: too much`},
		{"forbidden", apiextensionsv1.ValidationRule{Reason: reason(apiextensionsv1.FieldValueForbidden)}, `spec: Forbidden: failed rule: self.x <= self.maxLimit`},
		{"required", apiextensionsv1.ValidationRule{Reason: reason(apiextensionsv1.FieldValueRequired)}, `spec: Required value: failed rule: self.x <= self.maxLimit`},
		{"duplicate", apiextensionsv1.ValidationRule{Reason: reason(apiextensionsv1.FieldValueDuplicate)}, `spec: Duplicate value`},
		{"invalid", apiextensionsv1.ValidationRule{Reason: reason(apiextensionsv1.FieldValueInvalid)}, `spec: Invalid value: failed rule: self.x <= self.maxLimit`},
		{"of a field", apiextensionsv1.ValidationRule{FieldPath: ".x"}, `spec.x: Invalid value: failed rule: self.x <= self.maxLimit`},
		{"of an entry", apiextensionsv1.ValidationRule{FieldPath: ".m['a.b']"}, `spec.m[a.b]: Invalid value: failed rule: self.x <= self.maxLimit`},
	} {
		t.Run(tt.what, func(t *testing.T) {
			tt.rule.Rule = `self.x <= self.maxLimit`
			p := withRule(t, schemaOf(t, properties), "spec", tt.rule)
			// Kubernetes estimates the text of a number as one of any length.
			if errs := refusals(p); len(errs) > 0 && tt.what != "a message that is computed" {
				t.Error(errs)
			}
			if diff := cmp.Diff([]string{tt.want}, validate(t, p, `{spec: {x: 2, maxLimit: 1}}`, "")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The page: "The compilation failure".
func TestCompilation(t *testing.T) {
	for _, tt := range []struct{ rule, message, want string }{
		{`self == true`, "", `compilation failed: ERROR: <input>:1:6: found no matching overload for '_==_' applied to '(int, bool)'`},
		{`self.nonExistingField > 0`, "", `compilation failed: ERROR: <input>:1:5: type 'int' does not support field selection`},
		{`has(self)`, "", `compilation failed: ERROR: <input>:1:5: invalid argument to has() macro`},
		{`self`, "", `cel expression must evaluate to a bool`},
		{`self > 0`, "self", `messageExpression must evaluate to a string`},
		{`self > 0`, "nothing", `messageExpression compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing' (in container '')`},
		{`'x'.matches('(')`, "", `compilation failed: ERROR: <input>:1:13: invalid matches argument`},
		{`self > 0 && 'x'.find('(') == ''`, "", `program instantiation failed: error parsing regexp: missing closing ): `},
	} {
		t.Run(tt.rule+" "+tt.message, func(t *testing.T) {
			p := withRule(t, schemaOf(t, `{x: {type: integer}}`), "x", apiextensionsv1.ValidationRule{Rule: tt.rule, MessageExpression: tt.message})
			if errs := refusals(p); len(errs) != 1 || !strings.Contains(errs[0], tt.want) {
				t.Errorf("%q, want %q", errs, tt.want)
			}
		})
	}
}

// Fields of objects that are not there.
func TestUndefinedField(t *testing.T) {
	p := withRule(t, schemaOf(t, `{x: {type: object, properties: {}}}`), "x", apiextensionsv1.ValidationRule{Rule: `self.nonExistingField > 0`})
	if errs := refusals(p); len(errs) != 1 || !strings.Contains(errs[0], "ERROR: <input>:1:5: undefined field 'nonExistingField'") {
		t.Errorf("%q", errs)
	}
}
