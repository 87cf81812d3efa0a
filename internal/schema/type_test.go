package schema

import (
	"math"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/schematest"
)

func TestCoerceOfTypes(t *testing.T) {
	configMap := FromType(reflect.TypeFor[corev1.ConfigMap](), model.TypeOptions{Kind: model.Kind{Version: "v1", Kind: "ConfigMap"}})
	const prefix = `ConfigMap in version "v1" cannot be handled as a ConfigMap: `
	for _, tt := range []struct{ object, want string }{
		{`{data: {a: 1}}`, `json: cannot unmarshal number into Go struct field ConfigMap.data of type string`},
		{`{data: [1]}`, `json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string`},
		{`{binaryData: {a: "***"}}`, `illegal base64 data at input byte 0`},
	} {
		_, _, err := configMap.Complete(schematest.Tree(t, tt.object))
		if err == nil || err.Error() != prefix+tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.object, err, prefix+tt.want)
		}
	}
	out, unknown, err := configMap.Complete(schematest.Tree(t, `{apiVersion: v1, kind: ConfigMap, aa: 1, binaryDat: {}, metadata: {name: x, labels: {}, zz: 1}, data: {a: b}, binaryData: null}`))
	if err != nil {
		t.Fatal(err)
	}
	schematest.Equal(t, "unknown", unknown, []string{"aa", "binaryDat", "metadata.zz"})
	schematest.Equal(t, "object", out, schematest.Tree(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x}, data: {a: b}}`))

	inForm := schematest.Tree(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, creationTimestamp: "2026-01-02T03:04:05Z"}, data: {a: b}}`)
	configMap.Prune(inForm)
	if n := testing.AllocsPerRun(10, func() {
		if _, _, err := configMap.Complete(inForm); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for an object in form", n)
	}
}

// A type that contains itself, with fields only the type can read.
func TestRecursiveType(t *testing.T) {
	s := FromType(reflect.TypeFor[apiextensionsv1.CustomResourceDefinition](), model.TypeOptions{Kind: model.Kind{Version: "v1", Kind: "CustomResourceDefinition"}})
	obj := schematest.Tree(t, `{spec: {bad: 1, versions: [{schema: {openAPIV3Schema: {type: object, nope: 1, default: {any: {thing: 1}},
		properties: {a: {type: string, pattrn: x, enum: [{x: 1}], items: {type: string, odd: 1}}}}}}]}}`)
	schematest.Equal(t, "removed", s.Prune(obj), []string{
		"spec.bad", "spec.versions[0].schema.openAPIV3Schema.nope", "spec.versions[0].schema.openAPIV3Schema.properties.a.pattrn",
	})
}

// A float is not valid for an integer of a Go type, though it is for one of a schema. YAML has no
// difference, and decoded JSON has lost its spelling.
func TestCoerceNumbers(t *testing.T) {
	service := FromType(reflect.TypeFor[corev1.Service](), model.TypeOptions{Kind: model.Kind{Version: "v1", Kind: "Service"}})
	for _, tt := range []struct {
		number any
		want   string
	}{
		{int64(1), ""},
		{1.0, "1.0"},
		{math.Copysign(0, -1), "-0.0"},
		{1.5, "1.5"},
		{9223372036854775808.0, "9223372036854775808"},
		{1e300, "1e+300"},
	} {
		_, _, err := service.Complete(map[string]any{"apiVersion": "v1", "kind": "Service", "spec": map[string]any{"ports": []any{map[string]any{"port": tt.number}}}})
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%v: %v", tt.number, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), "json: cannot unmarshal number "+tt.want+" into Go struct field ")):
			t.Errorf("%v: %v, want it told as %s", tt.number, err, tt.want)
		}
	}
}
