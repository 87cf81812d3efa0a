package gotype

import (
	"math"
	"reflect"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/schematest"
)

// everything has a field of every form a Go type of the API can have.
type everything struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Text       string                       `json:"text"`
	TextOmit   string                       `json:"textOmit,omitempty"`
	TextPtr    *string                      `json:"textPtr,omitempty"`
	Flag       bool                         `json:"flag,omitempty"`
	Int        int32                        `json:"int,omitempty"`
	IntPtr     *int32                       `json:"intPtr,omitempty"`
	Uint       uint16                       `json:"uint,omitempty"`
	Float      float64                      `json:"float,omitempty"`
	Bytes      []byte                       `json:"bytes,omitempty"`
	Time       metav1.Time                  `json:"time,omitempty"`
	TimeZero   metav1.Time                  `json:"timeZero,omitempty,omitzero"`
	Micro      *metav1.MicroTime            `json:"micro,omitempty"`
	List       []string                     `json:"list,omitempty"`
	ListAlls   []string                     `json:"listAlways"`
	Map        map[string]string            `json:"map,omitempty"`
	Data       map[string][]byte            `json:"data,omitempty"`
	Inner      inner                        `json:"inner,omitempty"`
	Inners     []inner                      `json:"inners,omitempty"`
	Self       *everything                  `json:"self,omitempty"`
	Any        any                          `json:"any,omitempty"`
	Raw        *runtime.RawExtension        `json:"raw,omitempty"`
	Duration   *metav1.Duration             `json:"duration,omitempty"`
	Quantity   resource.Quantity            `json:"quantity,omitempty"`
	Amounts    map[string]resource.Quantity `json:"amounts,omitempty"`
	Port       *intstr.IntOrString          `json:"port,omitempty"`
	Nested     *nested                      `json:"nested,omitempty"`
	NestedZero nested                       `json:"nestedZero,omitzero"`
	Ignored    string                       `json:"-"`
}

type inner struct {
	A string `json:"a,omitempty"`
}

// nested has fields that are always encoded.
type nested struct {
	Always string   `json:"always"`
	Inner  inner    `json:"inner,omitempty"`
	List   []nested `json:"list,omitempty"`
}

// The fast check accepts exactly the round trip results of the type, if all its fields can be checked.
func TestCanonical(t *testing.T) {
	typ := Of(reflect.TypeFor[everything]())
	base := schematest.Tree(t, `{inner: {}, listAlways: [], metadata: {}, text: "", time: null, quantity: "0"}`)
	values := []any{
		nil, true, false, "", "x", int64(0), int64(7), int64(-1), int64(70000), int64(math.MaxInt64), 0.0, 1.5, 2.0, 1e300,
		[]any{}, []any{"a"}, []any{nil}, []any{int64(1)}, map[string]any{}, map[string]any{"a": "x"}, map[string]any{"a": ""},
		map[string]any{"a": nil}, map[string]any{"b": "x"}, map[string]any{"a": "YQ=="}, []any{map[string]any{"a": "x"}},
		"YQ==", "YR==", "YWI=", "YWJj", "Y\nQ==", "YQ", "=", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000006Z",
		"2026-01-02T03:04:05.0Z", "2026-01-02T03:04:05+01:00", "0001-01-01T00:00:00Z", "5m", "5m0s",
		"1", "1000m", "0.5", "1Gi", "1024Mi", "1e3", " 1 ", "100m", int64(1 << 31), map[string]any{"a": "1000m"}, map[string]any{"a": "1Gi"},
		map[string]any{"always": "x"}, map[string]any{"always": "", "inner": map[string]any{}},
		object.CloneTree(base),
	}
	names := []string{"unknown"}
	for f := range Fields(typ.typ) {
		names = append(names, f.JSONName)
	}
	if !typ.Canonical(base) {
		t.Fatal("the base is not canonical")
	}
	checked := 0
	for _, name := range names {
		for _, v := range values {
			obj := object.CloneTree(base)
			obj[name] = object.Clone(v)
			out, err := typ.through(obj)
			canonical := typ.Canonical(obj)
			coerced, coerceErr := typ.Coerce(object.CloneTree(obj))
			if (coerceErr == nil) != (err == nil) || err == nil && !object.Equal(coerced, out) {
				t.Errorf("%s: %#v is coerced to %#v, %v, and becomes %#v, %v", name, v, coerced[name], coerceErr, out[name], err)
			}
			if canonical && (err != nil || !object.Equal(out, obj)) {
				t.Errorf("%s: %#v is canonical but becomes %#v, %v", name, v, out[name], err)
			}
			// Only the type itself can check these.
			opaque := name == "duration" || name == "raw" || name == "float" || v == nil || name == "data" && reflect.DeepEqual(v, map[string]any{"a": nil})
			if err == nil && !canonical && !opaque && reflect.DeepEqual(out, obj) {
				t.Errorf("%s: %#v is not canonical but stays as it is", name, v)
			}
			checked++
		}
	}
	if checked < 800 {
		t.Errorf("only %d cases", checked)
	}
}

// A definition equals its round trip through its Go type, with the fast path and without.
func TestCoerceOfDefinitions(t *testing.T) {
	typ := Of(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition]())
	const base = `{metadata: {name: x}, spec: {group: g, scope: Cluster, names: {plural: xs, kind: X}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: SCHEMA}}]}`
	direct := 0
	for _, schema := range []string{
		`{type: object}`, `{type: object, properties: {}}`, `{type: ""}`, `{description: null}`, `{odd: 1}`, `{Type: object}`,
		`{items: {type: string}}`, `{items: [{type: string}]}`, `{items: []}`, `{items: {}}`, `{items: {odd: 1}}`, `{items: {Type: string}}`, `{items: null}`, `{items: x}`, `{items: true}`,
		`{additionalProperties: true}`, `{additionalProperties: false}`, `{additionalProperties: {}}`, `{additionalProperties: {type: x, items: {odd: 1}}}`,
		`{additionalProperties: {type: x, nullable: true}}`, `{additionalProperties: {nullable: false}}`, `{additionalProperties: []}`, `{additionalProperties: null}`, `{additionalProperties: 1}`,
		`{default: null}`, `{default: 1}`, `{default: 1.0}`, `{default: 1.5}`, `{default: {a: null, b: [1.0, "<&>"]}}`, `{default: ""}`, `{default: 1e30}`, `{default: 10000000000000000000}`,
		`{enum: [1, "a", null]}`, `{enum: [a, {b: 1.0}]}`, `{enum: []}`, `{example: {x: 1}}`,
		`{maximum: 5}`, `{maximum: 5.5}`, `{maximum: 5.0}`, `{maximum: 0}`, `{maximum: 9007199254740992}`, `{maximum: 9007199254740993}`, `{minimum: -9223372036854775807}`, `{maximum: x}`,
		`{maxLength: 5}`, `{maxLength: 5.0}`, `{maxLength: 0}`, `{exclusiveMinimum: false}`, `{x-kubernetes-preserve-unknown-fields: false}`,
		`{not: {type: string}, allOf: [{required: [a]}], dependencies: {a: [b]}}`, `{dependencies: {a: {type: object}}}`,
		`{x-kubernetes-validations: [{rule: "true"}]}`, `{x-kubernetes-validations: [{message: a}]}`, `{externalDocs: {}}`, `{externalDocs: {url: a}}`,
		`{properties: {a: {type: string, properties: {b: {items: {additionalProperties: {default: {}}}}}}}}`,
	} {
		for _, status := range []string{`}`, `, status: null}`, `, status: {}}`, `, status: {conditions: null, storedVersions: null, acceptedNames: {plural: "", kind: ""}}}`, `, status: {conditions: [], storedVersions: [v1], acceptedNames: {plural: "", kind: ""}}}`} {
			obj := schematest.Tree(t, strings.Replace(base, "SCHEMA", schema, 1)+status)
			want, wantErr := typ.through(object.CloneTree(obj))
			if typ.fieldsFit(obj) != foreign {
				direct++
			}
			got, err := typ.Coerce(obj)
			if (err == nil) != (wantErr == nil) || !object.Equal(got, want) {
				t.Errorf("%s%s:\n got %v, %v\nwant %v, %v", schema, status, got, err, want, wantErr)
			}
		}
	}
	if direct < 40 {
		t.Errorf("only %d did not go through the type", direct)
	}
}

// The least int64 as a float stays one.
func TestCoerceKeepsFloats(t *testing.T) {
	typ := Of(reflect.TypeFor[apiextensionsv1.JSONSchemaProps]())
	for _, f := range []float64{-1 << 63, 1 << 63, -1 << 62, 1e20, 1e21, 2} {
		got, err := typ.through(map[string]any{"enum": []any{f}})
		if want := map[string]any{"enum": []any{f}}; err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %v, %v", f, got, err)
		}
	}
}

// A null among bytes is no bytes, wherever it is; a null map of them is none.
func TestCoerceNullBytes(t *testing.T) {
	type holder struct {
		Data  map[string][]byte `json:"data,omitempty"`
		List  [][]byte          `json:"list,omitempty"`
		Parts []everything      `json:"parts,omitempty"`
		Words map[string]any    `json:"words,omitempty"`
	}
	got, err := Of(reflect.TypeFor[holder]()).Coerce(schematest.Tree(t, `{data: {a: null, b: YQ==}, list: [null, YQ==], parts: [{data: {c: null}}], words: {d: null}}`))
	if err != nil {
		t.Fatal(err)
	}
	schematest.Equal(t, "data", got["data"], any(schematest.Tree(t, `{a: "", b: YQ==}`)))
	schematest.Equal(t, "list", got["list"], any([]any{"", "YQ=="}))
	schematest.Equal(t, "data of a part", got["parts"].([]any)[0].(object.Tree)["data"], any(schematest.Tree(t, `{c: ""}`)))
	schematest.Equal(t, "words", got["words"], any(schematest.Tree(t, `{d: null}`)))
}

// Missing always encoded fields of a pod are added, and nothing else changes.
func TestCoerceFillsWhatIsLacking(t *testing.T) {
	typ := Of(reflect.TypeFor[everything]())
	for _, text := range []string{
		`{}`, `{nested: {}}`, `{nested: {list: [{}, {list: [{inner: {a: x}}]}]}}`, `{nestedZero: {}}`, `{nestedZero: {list: [{}]}}`,
		`{self: {self: {nested: {}}}}`, `{inners: [{}], self: {}}`, `{amounts: {cpu: 100m}, port: 80}`, `{port: http, amounts: {cpu: 0.1}}`,
	} {
		obj := schematest.Tree(t, text)
		want, err := typ.through(object.CloneTree(obj))
		if err != nil {
			t.Fatal(err)
		}
		got, err := typ.Coerce(obj)
		if err != nil || !object.Equal(got, want) {
			t.Errorf("%s:\n got %v, %v\nwant %v", text, got, err, want)
		}
	}
}
