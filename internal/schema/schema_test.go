package schema

import (
	"errors"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/schematest"
)

// ofSpec parses a schema of spec only.
func ofSpec(t testing.TB, text string) *Schema {
	t.Helper()
	s, err := Parse(schematest.OfSpec(t, text), testKind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

var testKind = model.Kind{Group: "stable.example.com", Version: "v1", Kind: "CronTab", ListKind: "CronTabList", Plural: "crontabs"}

func TestLazyCompilesOnceAndAgainAfterDrop(t *testing.T) {
	calls := 0
	p := schematest.Props(t, `{type: object, properties: {spec: {type: object}}}`)
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
		_, err := Parse(schematest.Props(t, tt.schema), testKind)
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
