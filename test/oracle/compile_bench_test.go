package oracle

import (
	"encoding/json"
	"flag"
	"runtime"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/jsonschema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/schema/structural"
)

var compiled = flag.Int("definitions", 2000, "number of definitions to compile")

// A storedSchema is the stored schema of one version of a definition.
type storedSchema struct {
	kind model.Kind
	data []byte
}

// repeated returns the schemas of n definitions: the published ones, repeated in groups of their own.
func repeated(b *testing.B, n int) (out []storedSchema) {
	published := definitions(b)
	for i := range n {
		crd := published[i%len(published)]
		for _, v := range crd.Spec.Versions {
			data, err := json.Marshal(v.Schema.OpenAPIV3Schema)
			if err != nil {
				b.Fatal(err)
			}
			k := kindOf(crd, &v)
			if i >= len(published) {
				k.Group = string(rune('a'+i/len(published)%26)) + "." + k.Group
			}
			out = append(out, storedSchema{k, data})
		}
	}
	return out
}

// BenchmarkCompileMany compiles the schemas of many definitions, all in use at once, and reports their
// memory. "shared" compiles equal schemas once, as the server does. "each" compiles every schema by
// itself. Run it with
//
//	go test -run '^$' -bench CompileMany -benchtime 1x .
func BenchmarkCompileMany(b *testing.B) {
	for _, c := range []struct {
		name    string
		compile func() func(storedSchema) (any, error)
	}{
		{"upstream", func() func(storedSchema) (any, error) { return compileUpstream }},
		{"anykind/each", func() func(storedSchema) (any, error) { return compileOurs(nil) }},
		{"anykind/shared", func() func(storedSchema) (any, error) { return compileOurs(&structural.Shared{}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			all := repeated(b, *compiled)
			kept := make([]any, len(all))
			before := heap()
			b.ResetTimer()
			for b.Loop() {
				clear(kept)
				compile := c.compile()
				for i, s := range all {
					var err error
					if kept[i], err = compile(s); err != nil {
						b.Fatalf("%v: %v", s.kind, err)
					}
				}
			}
			b.ReportMetric(float64(heap()-before)/(1<<20), "retained-MB")
			b.ReportMetric(float64(len(all)), "schemas")
			runtime.KeepAlive(kept)
			runtime.KeepAlive(all)
		})
	}
}

func compileUpstream(s storedSchema) (any, error) {
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := json.Unmarshal(s.data, props); err != nil {
		return nil, err
	}
	u, err := NewUpstream(props)
	if err != nil {
		return nil, err
	}
	v, err := NewValidator(props)
	return [2]any{u, v}, err
}

func compileOurs(shared *structural.Shared) func(storedSchema) (any, error) {
	return func(s storedSchema) (any, error) {
		out := schema.Stored(jsonschema.NewSource(func() ([]byte, error) { return s.data, nil }), s.kind, shared)
		out.Default(map[string]any{}) // for the first object
		return out, nil
	}
}

// heap returns the bytes in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
