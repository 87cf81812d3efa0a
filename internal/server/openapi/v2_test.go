package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	openapiv2 "github.com/google/gnostic-models/openapiv2"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	openapiproto "k8s.io/kube-openapi/pkg/util/proto"
	"k8s.io/kube-openapi/pkg/util/proto/validation"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
)

const acceptProtobuf = "Accept: application/com.github.proto-openapi.spec.v2@v1.0+protobuf"

func readWhole(t *testing.T, h *Handler) (*spec.Swagger, []byte) {
	t.Helper()
	w := ask(h, "GET", "/openapi/v2")
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	doc := &spec.Swagger{}
	if err := json.Unmarshal(w.Body.Bytes(), doc); err != nil {
		t.Fatal(err)
	}
	return doc, w.Body.Bytes()
}

// testdata has the operations of the document, one per line, for human readers.
func TestWholeDocument(t *testing.T) {
	h, _ := newHandler(t, Options{})
	doc, data := readWhole(t, h)
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s\n", doc.Info.Title, doc.Info.Version)
	for _, path := range sortedNames(doc.Paths.Paths) {
		p := doc.Paths.Paths[path]
		fmt.Fprintf(&out, "\n%s %s\n", path, v2Names(p.Parameters))
		for _, m := range []struct {
			method string
			op     *spec.Operation
		}{{"GET", p.Get}, {"POST", p.Post}, {"PUT", p.Put}, {"PATCH", p.Patch}, {"DELETE", p.Delete}} {
			if op := m.op; op != nil {
				fmt.Fprintf(&out, "\t%-6s %s %s: %s %s\n", m.method, op.ID, op.Tags, op.Description, v2Names(op.Parameters))
				fmt.Fprintf(&out, "\t\tconsumes %s, produces %s\n", op.Consumes, op.Produces)
				for code, r := range op.Responses.StatusCodeResponses {
					if ref := r.Schema; ref != nil && code == 200 {
						fmt.Fprintf(&out, "\t\t%d %s %s\n", code, r.Description, strings.TrimPrefix(ref.Ref.String(), v2RefPrefix))
					}
				}
			}
		}
	}
	for _, section := range []struct {
		title string
		names []string
	}{{"parameters", sortedNames(doc.Parameters)}, {"definitions", sortedNames(doc.Definitions)}} {
		fmt.Fprintln(&out, "\n"+section.title)
		for _, name := range section.names {
			fmt.Fprintln(&out, "\t"+name)
		}
	}
	golden(t, "v2.txt", out.String())

	for _, part := range strings.Split(string(data), `"$ref":"#/`)[1:] {
		section, rest, _ := strings.Cut(part, "/")
		name, _, _ := strings.Cut(rest, `"`)
		_, parameter := doc.Parameters[name]
		_, definition := doc.Definitions[name]
		if parameter != (section == "parameters") || definition != (section == "definitions") {
			t.Errorf("there is no %s/%s", section, name)
		}
	}
}

func v2Names(list []spec.Parameter) []string {
	out := []string{}
	for _, p := range list {
		switch {
		case p.Ref.String() != "":
			out = append(out, strings.TrimPrefix(p.Ref.String(), "#/parameters/"))
		case p.In == "body":
			out = append(out, "body:"+strings.TrimPrefix(p.Schema.Ref.String(), v2RefPrefix))
		default:
			out = append(out, p.In+":"+p.Name)
		}
	}
	return out
}

// No field is written twice: a client may read either.
func TestWholeDocumentNamesEverythingOnce(t *testing.T) {
	h, _ := newHandler(t, Options{})
	_, data := readWhole(t, h)
	if err := yaml.UnmarshalStrict(data, &map[string]any{}); err != nil {
		t.Error(err)
	}
}

// The published form of each schema follows the page on CustomResourceDefinitions ("Compatibility
// with OpenAPI V2"), and Kubernetes where the page is silent.
func TestSchemaInV2(t *testing.T) {
	for _, c := range []struct{ name, v3, v2 string }{
		{"what can be said stays",
			`{type: string, description: d, title: t, format: date, pattern: ^a, minLength: 1, maxLength: 2, enum: [a, b], example: a}`,
			`{type: string, description: d, title: t, format: date, pattern: ^a, minLength: 1, maxLength: 2, enum: [a, b], example: a}`},
		{"limits",
			`{type: number, minimum: -1.5, exclusiveMinimum: true, maximum: 2, exclusiveMaximum: true, multipleOf: 0.5}`,
			`{type: number, minimum: -1.5, exclusiveMinimum: true, maximum: 2, exclusiveMaximum: true, multipleOf: 0.5}`},
		{"lists and maps",
			`{type: array, minItems: 1, maxItems: 2, x-kubernetes-list-type: set, items: {type: object, minProperties: 1, maxProperties: 2, additionalProperties: {type: boolean}}}`,
			`{type: array, minItems: 1, maxItems: 2, x-kubernetes-list-type: set, items: {type: object, minProperties: 1, maxProperties: 2, additionalProperties: {type: boolean}}}`},
		{"any value in a map", `{type: object, additionalProperties: true}`, `{type: object, additionalProperties: true}`},
		{"defaults go", `{type: object, default: {a: 1}, properties: {a: {type: integer, default: 2}}}`, `{type: object, properties: {a: {type: integer}}}`},
		// "The fields allOf, anyOf, oneOf and not are removed"
		{"junctors go",
			`{type: object, properties: {a: {type: string}}, allOf: [{required: [a]}], anyOf: [{required: [a]}], oneOf: [{required: [a]}], not: {required: [b]}}`,
			`{type: object, properties: {a: {type: string}}}`},
		{"int-or-string loses its types", `{x-kubernetes-int-or-string: true, pattern: ^a}`, `{x-kubernetes-int-or-string: true, pattern: ^a}`},
		// "If nullable: true is set, we drop type, nullable, items and properties"
		{"nullable", `{type: string, nullable: true, minLength: 1}`, `{minLength: 1}`},
		{"nullable list", `{type: array, nullable: true, items: {type: string}}`, `{}`},
		{"nullable object", `{type: object, nullable: true, required: [a], properties: {a: {type: string}}}`, `{required: [a]}`},
		{"nullable map", `{type: object, nullable: true, additionalProperties: {type: string}}`, `{additionalProperties: {type: string}}`},
		{"what may be null is not required", `{type: object, required: [a, b], properties: {a: {type: string, nullable: true}, b: {type: string}}}`, `{type: object, required: [b], properties: {a: {}, b: {type: string}}}`},
		{"a map of what may be null", `{type: object, required: [a], additionalProperties: {type: string, nullable: true}}`, `{type: object, additionalProperties: {}}`},
		{"unknown fields", `{type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}`, `{x-kubernetes-preserve-unknown-fields: true}`},
		{"unknown fields in items", `{type: array, x-kubernetes-preserve-unknown-fields: true, items: {type: object}}`, `{x-kubernetes-preserve-unknown-fields: true}`},
		{"embedded",
			`{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`,
			`{x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}`},
		{"rules", `{type: string, x-kubernetes-validations: [{rule: self != ''}]}`, `{type: string, x-kubernetes-validations: [{rule: self != ''}]}`},
		{"documentation", `{type: string, externalDocs: {url: u, description: d}}`, `{type: string, externalDocs: {url: u, description: d}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := custom(t, strings.Replace(skies, "hue: {type: string}", "hue: "+c.v3, 1))
			var want, got any
			if err := yaml.Unmarshal([]byte(c.v2), &want); err != nil {
				t.Fatal(err)
			}
			m := d.Versions[0].Schema.Model()
			hue := v2Custom(m.Schemas[m.Name])["properties"].(fields)["hue"]
			if err := json.Unmarshal(appendJSON(nil, hue), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// An embedded object is published with the fields of every object, even if it is nullable, as
// long as the client gets all its fields.
func TestEmbeddedObjectInV2(t *testing.T) {
	for _, c := range []struct{ v3, properties, required string }{
		{`{type: object, x-kubernetes-embedded-resource: true, required: [x], properties: {x: {type: string}}}`,
			"apiVersion kind metadata x", "x kind apiVersion"},
		{`{type: object, x-kubernetes-embedded-resource: true, nullable: true, properties: {x: {type: string}}}`,
			"apiVersion kind metadata", "kind apiVersion"},
		{`{type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true, required: [apiVersion]}`,
			"", "apiVersion"},
	} {
		d := custom(t, strings.Replace(skies, "hue: {type: string}", "hue: "+c.v3, 1))
		m := d.Versions[0].Schema.Model()
		hue := v2Custom(m.Schemas[m.Name])["properties"].(fields)["hue"].(fields)
		properties, _ := hue["properties"].(fields)
		required, _ := hue["required"].([]string)
		if got := strings.Join(sortedNames(properties), " "); got != c.properties {
			t.Errorf("%s has %q", c.v3, got)
		}
		if got := strings.Join(required, " "); got != c.required {
			t.Errorf("%s requires %q", c.v3, got)
		}
		if metadata, ok := properties["metadata"].(fields); ok && metadata["$ref"] != v2RefPrefix+metaPrefix+"ObjectMeta" {
			t.Errorf("%s has metadata %v", c.v3, metadata)
		}
	}
}

// The definition may say so beside the schema, which was possible before Kubernetes 1.16.
func TestUnknownFieldsOfAnOldKindInV2(t *testing.T) {
	d := custom(t, skies)
	v := d.Versions[0]
	model := v.Schema.Model()
	model.Keeps = true
	v.Schema = otherwise{v.Schema, model}
	var c resource.Catalog
	c.Swap(resource.NewSet([]*resource.Definition{d}))
	doc, _ := readWhole(t, New(&c, Options{}))
	if sky := doc.Definitions["dev.anykind.disc.v1.Sky"]; len(sky.Properties) != 0 || len(sky.Extensions) != 2 {
		t.Errorf("got %+v", sky)
	}
	if list := doc.Definitions["dev.anykind.disc.v1.SkyList"]; len(list.Properties) != 4 {
		t.Errorf("got %+v", list)
	}
}

// otherwise is a schema with another published model.
type otherwise struct {
	resource.Schema
	model view.Model
}

func (p otherwise) Model() view.Model { return p.model }

// A kind that preserves unknown fields is published as an object without any fields, even without
// metadata.
func TestUnknownFieldsOfAKindInV2(t *testing.T) {
	h, _ := newHandler(t, Options{})
	doc, _ := readWhole(t, h)
	kite := doc.Definitions["dev.anykind.disc.v1beta1.Kite"]
	if len(kite.Properties) != 0 || !kite.Type.Contains("object") || len(kite.Extensions) != 1 {
		t.Errorf("got %+v", kite)
	}
	sky := doc.Definitions["dev.anykind.disc.v1.Sky"]
	if want := []any{map[string]any{"fieldPath": "hue"}}; !reflect.DeepEqual(sky.Extensions["x-kubernetes-selectable-fields"], want) {
		t.Errorf("a Sky is published with %v", sky.Extensions)
	}
}

func TestNativeTypesInV2(t *testing.T) {
	h, _ := newHandler(t, Options{})
	doc, _ := readWhole(t, h)
	lease := doc.Definitions["io.k8s.api.coordination.v1.Lease"]
	if p := lease.Properties["metadata"]; p.Ref.String() != v2RefPrefix+metaPrefix+"ObjectMeta" || p.Description == "" || p.Default != nil {
		t.Errorf("metadata of a Lease: %+v", p)
	}
	kinds, _ := doc.Definitions[deleteOptions].Extensions["x-kubernetes-group-version-kind"].([]any)
	if len(kinds) != 62 {
		t.Errorf("DeleteOptions are of %d group versions, want the 62 that a Kubernetes server has", len(kinds))
	}
}

// Most deletes answer with a Status; some, such as that of a ServiceAccount, with the deleted
// object.
func TestAnswerOfDelete(t *testing.T) {
	d := custom(t, skies)
	d.ReturnsDeleted = true
	var c resource.Catalog
	c.Swap(resource.NewSet(append(nativeDefinitions(t), d)))
	doc, _ := readWhole(t, New(&c, Options{}))
	for path, want := range map[string]string{
		"/apis/disc.anykind.dev/v1/skies/{name}":                            "dev.anykind.disc.v1.Sky",
		"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}": statusModel,
	} {
		for _, code := range []int{200, 202} {
			ref := doc.Paths.Paths[path].Delete.Responses.StatusCodeResponses[code].Schema.Ref
			if got := strings.TrimPrefix(ref.String(), v2RefPrefix); got != want {
				t.Errorf("DELETE %s answers %d with a %s", path, code, got)
			}
		}
	}
}

// The protobuf equals the conversion of the JSON by the clients' library.
func TestProtobuf(t *testing.T) {
	h, _ := newHandler(t, Options{})
	_, data := readWhole(t, h)
	want, err := openapiv2.ParseDocument(data)
	if err != nil {
		t.Fatal(err)
	}
	w := ask(h, "GET", "/openapi/v2", acceptProtobuf)
	got := &openapiv2.Document{}
	if err := proto.Unmarshal(w.Body.Bytes(), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asAny(t, want.ProtoReflect()), asAny(t, got.ProtoReflect())); diff != "" {
		t.Error(diff)
	}
	models, err := openapiproto.NewOpenAPIData(got)
	if err != nil {
		t.Fatal(err)
	}
	kite, ok := models.LookupModel("dev.anykind.disc.v1.Kite").(*openapiproto.Kind)
	if !ok {
		t.Fatal("kubectl would not find a Kite")
	}
	if got := slices.Sorted(maps.Keys(kite.Fields)); !slices.Equal(got, []string{"apiVersion", "kind", "metadata", "spec", "status"}) {
		t.Errorf("kubectl would see the fields %v of a Kite", got)
	}
	// As kubectl validates without a server.
	errs := validation.ValidateModel(map[string]any{
		"apiVersion": "disc.anykind.dev/v1", "kind": "Kite", "spec": map[string]any{"length": "long", "wings": 2},
	}, kite, "Kite")
	if got := fmt.Sprint(errs); !strings.Contains(got, `unknown field "wings" in dev.anykind.disc.v1.Kite.spec`) || len(errs) != 2 {
		t.Errorf("kubectl would say %s", got)
	}
	gvk := kite.GetExtensions()["x-kubernetes-group-version-kind"]
	if fmt.Sprint(gvk) != "[map[group:disc.anykind.dev kind:Kite version:v1]]" {
		t.Errorf("kubectl would see the kinds %v of a Kite", gvk)
	}
}

// asAny converts a message to maps and lists. It parses fields with YAML and sorts maps by name:
// both may differ.
func asAny(t *testing.T, m protoreflect.Message) any {
	t.Helper()
	out := map[string]any{}
	for f, v := range m.Range {
		name := string(f.Name())
		switch {
		case f.IsList():
			var list []any
			for i := range v.List().Len() {
				if f.Kind() == protoreflect.MessageKind {
					list = append(list, asAny(t, v.List().Get(i).Message()))
				} else {
					list = append(list, v.List().Get(i).Interface())
				}
			}
			slices.SortFunc(list, func(a, b any) int { return strings.Compare(dataName(a), dataName(b)) })
			out[name] = list
		case f.Kind() == protoreflect.MessageKind:
			out[name] = asAny(t, v.Message())
		case name == "yaml":
			var value any
			if err := yaml.Unmarshal([]byte(v.String()), &value); err != nil {
				t.Fatal(err)
			}
			out[name] = value
		default:
			out[name] = v.Interface()
		}
	}
	return out
}

// dataName returns the name in a message of a name and a value.
func dataName(v any) string {
	if m, ok := v.(map[string]any); ok && m["value"] != nil {
		name, _ := m["name"].(string)
		return name
	}
	return ""
}

func TestFormOfTheWholeDocument(t *testing.T) {
	h, _ := newHandler(t, Options{})
	for accept, want := range map[string]string{
		"":                 v2JSON,
		"*/*":              v2JSON,
		"application/*":    v2JSON,
		"application/json": v2JSON,
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf":                         v2Protobuf,
		"application/com.github.proto-openapi.spec.v2.v1.0+protobuf":                         v2Protobuf,
		"application/json;q=0.5, application/com.github.proto-openapi.spec.v2@v1.0+protobuf": v2Protobuf,
		"application/yaml":      "",
		"application/yaml, */*": v2JSON,
	} {
		w := ask(h, "GET", "/openapi/v2", "Accept: "+accept)
		if got := w.Header().Get("Content-Type"); got != want || (w.Code == 406) != (want == "") {
			t.Errorf("Accept %q: %d %q, want %q", accept, w.Code, got, want)
		}
		if vary := w.Header().Values("Vary"); !slices.Equal(vary, []string{"Accept-Encoding", "Accept"}) {
			t.Errorf("Accept %q: Vary %q", accept, vary)
		}
	}
}

func TestWholeDocumentIsCachedByItsTag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, c := newHandler(t, Options{Idle: time.Minute})
		w := ask(h, "HEAD", "/openapi/v2")
		etag, modified := w.Header().Get("ETag"), w.Header().Get("Last-Modified")
		if w.Body.Len() != 0 || w.Code != 200 {
			t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
		}
		for _, header := range []string{
			"If-None-Match: " + etag, `If-None-Match: "x", W/` + etag, "If-None-Match: *",
		} {
			if w := ask(h, "GET", "/openapi/v2", header); w.Code != 304 || w.Body.Len() != 0 || w.Header().Get("Last-Modified") != "" {
				t.Errorf("%s: %d, a Last-Modified or a body with %d bytes", header, w.Code, w.Body.Len())
			}
		}
		for _, header := range []string{`If-None-Match: "x"`, "If-Modified-Since: " + modified} {
			if w := ask(h, "GET", "/openapi/v2", header); w.Code != 200 {
				t.Errorf("%s: %d", header, w.Code)
			}
		}

		// The same content has the same hash again, whatever came between.
		before := append(nativeDefinitions(t), custom(t, skies), custom(t, kites))
		time.Sleep(5 * time.Second)
		c.Swap(resource.NewSet(before[:len(before)-1]))
		if w := ask(h, "GET", "/openapi/v2", "If-None-Match: "+etag); w.Code != 200 || w.Header().Get("Last-Modified") == modified {
			t.Errorf("after a change: %d, modified %s", w.Code, w.Header().Get("Last-Modified"))
		}
		slices.Reverse(before)
		c.Swap(resource.NewSet(before))
		if w := ask(h, "GET", "/openapi/v2", "If-None-Match: "+etag); w.Code != 304 {
			t.Errorf("after a change and back: %d", w.Code)
		}

		time.Sleep(3 * time.Minute)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.cache.shared != nil || h.cache.fingerprints.Len() != 0 || h.cache.timer != nil {
			t.Errorf("after three minutes this is kept: %+v", &h.cache)
		}
	})
}

// The whole document is not cached in memory after it was read.
func TestWholeDocumentIsNotKept(t *testing.T) {
	h, _ := newHandler(t, Options{})
	readWhole(t, h)
	ask(h, "GET", "/openapi/v2", acceptProtobuf)
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.cache.documents) != 0 || h.cache.list != nil {
		t.Errorf("this is kept: %+v", &h.cache)
	}
}
