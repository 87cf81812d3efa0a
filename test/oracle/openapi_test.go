package oracle

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	openapiv3 "github.com/google/gnostic-models/openapiv3"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/check"
	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/server/openapi"
)

// wordless are the schemas whose descriptions are only in the source of Kubernetes. Ours have our own
// words.
var wordless = []string{"io.k8s.apimachinery.pkg.apis.meta.v1.Time"}

// published is a decoded OpenAPI document.
type published map[string]any

// part returns the object at a path.
func (p published) part(path ...string) map[string]any {
	at := map[string]any(p)
	for _, name := range path {
		at, _ = at[name].(map[string]any)
	}
	return at
}

// readPublished returns a value as decoded JSON.
func readPublished(t *testing.T, v any) published {
	t.Helper()
	data, ok := v.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(v); err != nil {
			t.Fatal(err)
		}
	}
	out := published{}
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// ours returns a function that gets a document of an anykind with these definitions.
func ours(t *testing.T, definitions ...*apiextensionsv1.CustomResourceDefinition) func(path string, accept ...string) []byte {
	t.Helper()
	var set []*resource.Definition
	for _, c := range definitions {
		d, err := compile.Definition(c)
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, d)
	}
	catalog := &resource.Catalog{}
	catalog.Swap(resource.NewSet(set))
	h := openapi.New(catalog, openapi.Options{})
	return func(path string, accept ...string) []byte {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Header["Accept"] = accept
		if h.ServeHTTP(w, r); w.Code != 200 {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
}

// compareOpenAPI compares the published documents of definitions in different groups.
func compareOpenAPI(t *testing.T, definitions ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	ask := ours(t, definitions...)
	v3 := map[string][]*spec3.OpenAPI{}
	v2 := published{"paths": map[string]any{}, "definitions": map[string]any{}, "parameters": map[string]any{}}
	for _, c := range definitions {
		for _, v := range c.Spec.Versions {
			if !v.Served {
				continue
			}
			document := c.Spec.Group + "/" + v.Name
			three, err := builder.BuildOpenAPIV3(c, v.Name, builder.Options{IncludeSelectableFields: true})
			if err != nil {
				t.Fatal(err)
			}
			v3[document] = append(v3[document], three)
			two, err := builder.BuildOpenAPIV2(c, v.Name, builder.Options{V2: true, IncludeSelectableFields: true})
			if err != nil {
				t.Fatal(err)
			}
			two.Definitions = handler.PruneDefaults(two.Definitions)
			for section, into := range v2 {
				for name, value := range readPublished(t, two).part(section) {
					into.(map[string]any)[name] = value
				}
			}
		}
	}
	for document, parts := range v3 {
		merged, err := builder.MergeSpecsV3(parts...)
		if err != nil {
			t.Fatal(err)
		}
		data := ask("/openapi/v3/apis/" + document)
		want, got := readPublished(t, merged), readPublished(t, data)
		for _, name := range wordless {
			delete(want.part("components", "schemas", name), "description")
			delete(got.part("components", "schemas", name), "description")
		}
		sameDocument(t, "OpenAPI v3 of "+document, map[string]any(want), map[string]any(got))
		binary, err := handler3.ToV3ProtoBinary(data)
		if err != nil {
			t.Fatal(err)
		}
		sameMessage(t, "OpenAPI v3 of "+document, &openapiv3.Document{}, binary, ask("/openapi/v3/apis/"+document, v3Protobuf))
	}
	data := ask("/openapi/v2")
	binary, err := handler.ToProtoBinary(data)
	if err != nil {
		t.Fatal(err)
	}
	sameMessage(t, "OpenAPI v2 of "+definitions[0].Name, &openapiv2.Document{}, binary, ask("/openapi/v2", v2Protobuf))
	whole := readPublished(t, data)
	got := published{}
	for section, into := range v2 {
		of := map[string]any{}
		got[section] = of
		for name := range into.(map[string]any) {
			// The schemas in common are covered elsewhere.
			if strings.HasPrefix(name, "io.k8s.") && !own(name, definitions) {
				delete(into.(map[string]any), name)
			} else if value, ok := whole.part(section)[name]; ok {
				of[name] = value
			}
		}
	}
	sameDocument(t, "OpenAPI v2 of "+definitions[0].Name, map[string]any(v2), map[string]any(got))
}

// own reports whether a schema of that name belongs to one of the definitions.
func own(name string, definitions []*apiextensionsv1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(definitions, func(c *apiextensionsv1.CustomResourceDefinition) bool {
		parts := strings.Split(c.Spec.Group, ".")
		slices.Reverse(parts)
		return strings.HasPrefix(name, strings.Join(parts, ".")+".")
	})
}

// sameDocument reports the differences of two JSON values.
func sameDocument(t *testing.T, at string, want, got any) {
	t.Helper()
	if wants, ok := want.([]any); ok {
		if gots, ok := got.([]any); ok && len(wants) == len(gots) {
			for i := range wants {
				sameDocument(t, fmt.Sprintf("%s %d", at, i), wants[i], gots[i])
			}
			return
		}
	}
	wants, one := want.(map[string]any)
	gots, other := got.(map[string]any)
	if !one || !other {
		if !reflect.DeepEqual(want, got) {
			t.Errorf("%s is\n\t%#v, and of Kubernetes\n\t%#v", at, got, want)
		}
		return
	}
	names := maps.Clone(wants)
	maps.Copy(names, gots)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		switch want, ok := wants[name]; {
		case !ok:
			t.Errorf("%s has %s, which that of Kubernetes has not: %v", at, name, gots[name])
		case gots[name] == nil && want != nil:
			t.Errorf("%s has no %s, which that of Kubernetes has: %v", at, name, want)
		default:
			sameDocument(t, at+" "+name, want, gots[name])
		}
	}
}

// The published documents of the groups of the corpus: of one in four, and of all with -n 1000 or
// more.
func TestCorpusOpenAPI(t *testing.T) {
	groups := map[string][]*apiextensionsv1.CustomResourceDefinition{}
	names := map[string]bool{}
	for _, c := range definitions(t) {
		// The Gateway API has two channels with definitions of the same names.
		if !names[c.Name] {
			names[c.Name] = true
			groups[c.Spec.Group] = append(groups[c.Spec.Group], c)
		}
	}
	step := 4
	if *cases >= 1000 {
		step = 1
	}
	compared := 0
	for i, name := range slices.Sorted(maps.Keys(groups)) {
		if i%step == 0 {
			compareOpenAPI(t, groups[name]...)
			compared += len(groups[name])
		}
	}
	t.Logf("%d of %d definitions", compared, len(names))
}

// The published documents of generated definitions.
func TestOpenAPIRandom(t *testing.T) {
	compared := 0
	for seed := range uint64(volume(*cases / 4)) {
		g := newGenerator(seed)
		props := g.root()
		if g.one(2) {
			g.restrict(props)
		}
		g.describe(props)
		if len(check.Schema(props, field.NewPath(schemaPath)).Errors()) > 0 {
			continue // the definition is invalid
		}
		compared++
		if compareOpenAPI(t, g.definition(props)); t.Failed() {
			t.Fatalf("seed %d: %s", seed, text(props))
		}
	}
	t.Logf("%d definitions", compared)
}

// describe adds fields of a schema without an effect on validation.
func (g generator) describe(p *apiextensionsv1.JSONSchemaProps) {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		sub := p.Properties[name]
		g.describe(&sub)
		p.Properties[name] = sub
	}
	if p.Items != nil && p.Items.Schema != nil {
		g.describe(p.Items.Schema)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		g.describe(p.AdditionalProperties.Schema)
	}
	if g.one(3) {
		p.Description = pick(g, "what it is", "<b>&\"ü\u2028", "two\nlines: #")
	}
	if g.one(8) {
		p.Title = "a title"
	}
	if g.one(8) {
		p.Example = asJSON(g.anything(2))
	}
	if g.one(8) {
		// Without a URL, Kubernetes' protobuf omits it.
		p.ExternalDocs = &apiextensionsv1.ExternalDocumentation{Description: pick(g, "", "more"), URL: "https://example.com"}
	}
	if p.Type == "object" && g.one(6) {
		p.XMapType = new(pick(g, "atomic", "granular"))
	}
	if g.one(8) {
		p.XValidations = apiextensionsv1.ValidationRules{{
			Rule: "true", Message: pick(g, "", "no"), MessageExpression: pick(g, "", "'no'"),
			Reason: pick(g, nil, new(apiextensionsv1.FieldValueInvalid)), OptionalOldSelf: pick(g, nil, new(true)),
		}}
	}
	if p.XIntOrString && g.one(2) {
		p.AnyOf = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	}
}

// definition returns a CustomResourceDefinition with that schema.
func (g generator) definition(props *apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	c := &apiextensionsv1.CustomResourceDefinition{}
	c.Name = "gadgets.example.com"
	c.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: pick(g, "example.com", "a-b.example.com", "apps2.v1.example.com"),
		Scope: pick(g, apiextensionsv1.NamespaceScoped, apiextensionsv1.ClusterScoped),
		Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: "gadgets", Kind: pick(g, "Gadget", "Egg", "Settings", "Moss", "X1"), ListKind: pick(g, "", "Eggs"),
		},
		PreserveUnknownFields: g.one(10),
	}
	for i, name := range []string{"v1", "v2alpha1"} {
		v := apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: i == 0 || g.one(2), Storage: i == 0,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
		}
		if g.one(2) {
			v.Subresources = &apiextensionsv1.CustomResourceSubresources{}
			if g.one(2) {
				v.Subresources.Status = &apiextensionsv1.CustomResourceSubresourceStatus{}
			}
			if g.one(2) {
				v.Subresources.Scale = &apiextensionsv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".spec.replicas", StatusReplicasPath: ".status.replicas",
				}
			}
		}
		for range g.IntN(3) {
			v.SelectableFields = append(v.SelectableFields, apiextensionsv1.SelectableField{JSONPath: pick(g, ".spec.a", ".spec.b.c")})
		}
		c.Spec.Versions = append(c.Spec.Versions, v)
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(c)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&c.Spec)
	return c
}
