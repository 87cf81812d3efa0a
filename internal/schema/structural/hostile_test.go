package structural

import (
	"fmt"
	"math"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Numbers at the limits, as decoded: a number beyond int64 is a float, and a number beyond float64 is
// rejected earlier.
func TestValidateNumbersAtTheEdges(t *testing.T) {
	integer := ofSpec(t, `{type: integer}`)
	narrow := ofSpec(t, `{type: integer, format: int32}`)
	single := ofSpec(t, `{type: number, format: float}`)
	for _, tt := range []struct {
		schema Schema
		value  any
		valid  bool
	}{
		{integer, int64(math.MaxInt64), true},
		{integer, int64(math.MinInt64), true},
		{integer, 9223372036854775808.0, false}, // 2^63
		{integer, math.Copysign(0, -1), true},
		{integer, 1.0, true},
		{integer, 1e308, false},
		{integer, math.SmallestNonzeroFloat64, false},
		{narrow, int64(math.MaxInt32), true},
		{narrow, int64(math.MaxInt32 + 1), false},
		{narrow, 2147483647.0, true},
		{narrow, 2147483648.0, false},
		{single, 3e38, true},
		{single, 4e38, false},
		{single, int64(math.MaxInt64), true},
	} {
		errs := tt.schema.Validate(t.Context(), map[string]any{"spec": tt.value}, nil)
		if (len(errs) == 0) != tt.valid {
			t.Errorf("%T %v: %v", tt.value, tt.value, errs)
		}
	}
}

func TestValidateInvalidUTF8(t *testing.T) {
	s := ofSpec(t, `{type: array, x-kubernetes-list-type: set, items: {type: string, maxLength: 2, pattern: "^.*$"}}`)
	// Every byte that is part of no character counts as one.
	for _, tt := range []struct {
		list []any
		want int
	}{
		{[]any{"\xff\xfe"}, 0},
		{[]any{"\xff\xfe\xfd"}, 1},
		{[]any{"\xff", "\xfe"}, 0},
		{[]any{"\xff", "\xff"}, 1},
	} {
		if errs := s.Validate(t.Context(), map[string]any{"spec": tt.list}, nil); len(errs) != tt.want {
			t.Errorf("%q: %v", tt.list, errs)
		}
	}
}

// Values outside the schema are not checked, at any depth; and the deepest possible schema works too.
func TestValidateDeepNesting(t *testing.T) {
	var v any = "x"
	for range 10000 {
		v = map[string]any{"a": v}
	}
	s := ofSpec(t, `{type: object, x-kubernetes-preserve-unknown-fields: true}`)
	if errs := s.Validate(t.Context(), map[string]any{"spec": v}, nil); len(errs) > 0 {
		t.Error(errs)
	}

	p := &apiextensionsv1.JSONSchemaProps{Type: "string"}
	v = int64(1)
	for range 1000 {
		p = &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: p}}
		v = []any{v}
	}
	deep := parse(t, &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": *p}})
	obj := map[string]any{"spec": v}
	if errs := deep.Validate(t.Context(), obj, nil); len(errs) != 1 || !strings.HasSuffix(errs[0].Field, "[0][0]") {
		t.Errorf("%d errors", len(errs))
	}
	if errs := deep.Validate(t.Context(), obj, obj); len(errs) > 0 {
		t.Error("not forgiven")
	}
}

// Many wrong values are many errors, not more work than that.
func TestValidateGiantMaps(t *testing.T) {
	s := ofSpec(t, `{type: object, additionalProperties: {type: string, maxLength: 3, anyOf: [{pattern: ^a}, {pattern: ^b}]}}`)
	const size = 50000
	m := make(map[string]any, size)
	for i := range size {
		m[fmt.Sprint(i)] = "cccc"
	}
	obj := map[string]any{"spec": m}
	if errs := s.Validate(t.Context(), obj, nil); len(errs) != 3*size {
		t.Errorf("%d errors", len(errs))
	}
	if errs := s.Validate(t.Context(), obj, obj); len(errs) > 0 {
		t.Errorf("%d errors of what did not change", len(errs))
	}
}

// A pattern takes linear time in the string. Package check rejects patterns that are too big to
// compile.
func TestValidateEnormousPatterns(t *testing.T) {
	s := ofSpec(t, `{type: string, pattern: "^(a|aa)+$"}`)
	if errs := s.Validate(t.Context(), map[string]any{"spec": strings.Repeat("a", 100000) + "b"}, nil); len(errs) != 1 {
		t.Errorf("%d errors", len(errs))
	}
}

// Nested alternatives are each tried once for their occurrence: 6 levels of 3 finish at once.
func TestValidateNestedAlternatives(t *testing.T) {
	p := apiextensionsv1.JSONSchemaProps{Pattern: "^a"}
	for range 6 {
		p = apiextensionsv1.JSONSchemaProps{AnyOf: []apiextensionsv1.JSONSchemaProps{p, p, p}}
	}
	p.Type = "string"
	s := parse(t, &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": p}})
	errs := s.Validate(t.Context(), map[string]any{"spec": "b"}, nil)
	if len(errs) != 2 { // equal errors count once
		t.Error(errs)
	}
}
