package schema

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// props reads a schema.
func props(t testing.TB, text string) *apiextensionsv1.JSONSchemaProps {
	t.Helper()
	out := &apiextensionsv1.JSONSchemaProps{}
	if err := yaml.UnmarshalStrict([]byte(strings.ReplaceAll(text, "\t", "  ")), out); err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	return out
}

// ofSpec reads a schema that says something of spec only.
func ofSpec(t testing.TB, text string) *Schema {
	t.Helper()
	p := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": *props(t, text),
	}}
	return parse(t, p)
}

func parse(t testing.TB, p *apiextensionsv1.JSONSchemaProps) *Schema {
	t.Helper()
	s, err := Parse(p, testKind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var testKind = Kind{Group: "stable.example.com", Version: "v1", Kind: "CronTab", ListKind: "CronTabList", Plural: "crontabs"}

// tree reads an object.
func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	var out map[string]any
	if err := utiljson.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestLazyCompilesOnceAndAgainAfterDrop(t *testing.T) {
	calls := 0
	p := props(t, `{type: object, properties: {spec: {type: object}}}`)
	s := Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { calls++; return p, nil }, testKind)
	if s.Compiled() || calls != 0 {
		t.Fatal("compiled before it was needed")
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			obj := map[string]any{"spec": map[string]any{"x": int64(1)}}
			if removed := s.Prune(obj); len(removed) != 1 {
				t.Errorf("removed %v", removed)
			}
		})
	}
	wg.Wait()
	if calls != 1 || !s.Compiled() {
		t.Fatalf("compiled %d times", calls)
	}
	s.Drop()
	if s.Compiled() {
		t.Error("Drop kept the program")
	}
	s.Prune(map[string]any{})
	if calls != 2 {
		t.Errorf("compiled %d times, want 2", calls)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{`{type: object, properties: {a: {$ref: "#/x"}}}`, "OpenAPIV3Schema '$ref' is not supported"},
		{`{id: x}`, "OpenAPIV3Schema 'id' is not supported"},
		{`{properties: {a: {patternProperties: {x: {type: string}}}}}`, "OpenAPIV3Schema 'patternProperties' is not supported"},
		{`{properties: {a: {items: [{type: string}]}}}`, "OpenAPIV3Schema 'items' must be a schema, but is an array"},
		{`{x-kubernetes-preserve-unknown-fields: false}`, "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"},
	} {
		_, err := Parse(props(t, tt.schema), testKind)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: %v, want %s", tt.schema, err, tt.want)
		}
	}
	broken := errors.New("gone")
	s := Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { return nil, broken }, testKind)
	defer func() {
		if err, _ := recover().(error); !errors.Is(err, broken) {
			t.Errorf("recovered %v, want an error that wraps the cause", err)
		}
	}()
	s.Prune(map[string]any{})
}
