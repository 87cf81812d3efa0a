package oracle

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	upstreamcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/runtime"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/anykind/anykind/internal/schema/celrule"
)

// A ruledObject is an object to validate by the rules of its schema.
type ruledObject struct {
	name     string
	props    *apiextensionsv1.JSONSchemaProps
	obj, old map[string]any
}

func ruledObjects(b *testing.B) []ruledObject {
	list := keyedList(100)
	changed := runtime.DeepCopyJSON(list)
	changed["spec"].(map[string]any)["items"].([]any)[50].(map[string]any)["size"] = int64(7)
	out := []ruledObject{{"MapList100", keyedListSchema(), changed, list}}
	route := ruledObject{name: "HTTPRoute"}
	most := 0
	corpusObjects(b, func(path string, props *apiextensionsv1.JSONSchemaProps, obj map[string]any) {
		if obj["kind"] == "HTTPRoute" && filepath.Base(path) == "httproute.yaml" && len(text(obj)) > most {
			u, err := NewUpstream(props)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := u.Complete(obj, false); err != nil {
				b.Fatal(err)
			}
			route.props, route.obj, most = props, obj, len(text(obj))
		}
	})
	if route.props == nil {
		b.Fatal("no example of an HTTPRoute")
	}
	return append(out, route)
}

// keyedListSchema has a list of type map with a transition rule for its items.
func keyedListSchema() *apiextensionsv1.JSONSchemaProps {
	item := apiextensionsv1.JSONSchemaProps{
		Type: "object", Required: []string{"name"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"name": {Type: "string", MaxLength: new(int64(63))},
			"size": {Type: "integer"},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.size >= oldSelf.size", Message: "must not shrink"}},
	}
	return &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
		"spec": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{
			"items": {
				Type: "array", MaxItems: new(int64(1000)), XListType: new("map"), XListMapKeys: []string{"name"},
				Items:        &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &item},
				XValidations: apiextensionsv1.ValidationRules{{Rule: "self.all(i, i.size < 1000)"}},
			},
		}},
	}}
}

func keyedList(n int) map[string]any {
	items := make([]any, n)
	for i := range items {
		items[i] = map[string]any{"name": fmt.Sprintf("item-%d", i), "size": int64(1)}
	}
	return map[string]any{"spec": map[string]any{"items": items}}
}

func BenchmarkRules(b *testing.B) {
	for _, j := range ruledObjects(b) {
		b.Run(j.name+"/anykind", func(b *testing.B) {
			rules, err := celrule.New(j.props, nil)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if errs := rules.Validate(context.Background(), j.obj, j.old, celrule.Options{Update: true}); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
		b.Run(j.name+"/upstream", func(b *testing.B) {
			rules := newUpstreamRules(b, j.props)
			b.ReportAllocs()
			for b.Loop() {
				if errs := rules.validate(j.obj, j.old); len(errs) > 0 {
					b.Fatal(errs)
				}
			}
		})
	}
}

// BenchmarkRulesCompile measures rules from a schema to the first evaluation.
func BenchmarkRulesCompile(b *testing.B) {
	for _, j := range ruledObjects(b) {
		b.Run(j.name+"/anykind", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				rules, err := celrule.New(j.props, nil)
				if err != nil {
					b.Fatal(err)
				}
				rules.CompileAll()
			}
		})
		b.Run(j.name+"/upstream", func(b *testing.B) {
			in, err := internal(j.props)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				s, err := structuralschema.NewStructural(in)
				if err != nil {
					b.Fatal(err)
				}
				if upstreamcel.NewValidator(s, true, celconfig.PerCallLimit) == nil {
					b.Fatal("no rules")
				}
			}
		})
	}
}
