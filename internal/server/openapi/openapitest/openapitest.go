// Package openapitest has Definitions, and requests for the documents about them, for tests of
// discovery and OpenAPI.
//
// It knows schemas and Definitions, but not the packages that it helps to test.
package openapitest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
)

// native returns a Definition with a Go type.
func native[T, L any](t testing.TB, d resource.Definition, version string) *resource.Definition {
	t.Helper()
	d.ListKind = d.Kind + "List"
	v := &resource.Version{
		Name: version, Served: true, Storage: true,
		New: func() runtime.Object { return any(new(T)).(runtime.Object) },
		Schema: schema.FromType(reflect.TypeFor[T](), model.TypeOptions{
			Kind: model.Kind{Group: d.Group, Version: version, Kind: d.Kind},
			List: reflect.TypeFor[L](),
		}),
	}
	if d.Plural == "namespaces" {
		v.Subresources = []resource.Subresource{
			{Name: "finalize", Verbs: []string{"update"}},
			{Name: "status", Verbs: []string{"get", "patch", "update"}},
		}
	}
	if d.Plural == "customresourcedefinitions" {
		v.Subresources = []resource.Subresource{{Name: "status", Verbs: []string{"get", "patch", "update"}}}
	}
	d.Versions, d.Dialect = []*resource.Version{v}, resource.CompiledIn
	return resource.New(d)
}

// Native returns some of Kubernetes' own resources.
func Native(t testing.TB) []*resource.Definition {
	return []*resource.Definition{
		native[corev1.Namespace, corev1.NamespaceList](t, resource.Definition{
			Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}, GroupPriority: 18000,
		}, "v1"),
		native[corev1.ConfigMap, corev1.ConfigMapList](t, resource.Definition{
			Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"},
			Namespaced: true, GroupPriority: 18000,
		}, "v1"),
		native[coordinationv1.Lease, coordinationv1.LeaseList](t, resource.Definition{
			Group: "coordination.k8s.io", Plural: "leases", Singular: "lease", Kind: "Lease",
			Namespaced: true, GroupPriority: 16500,
		}, "v1"),
		native[apiextensionsv1.CustomResourceDefinition, apiextensionsv1.CustomResourceDefinitionList](t, resource.Definition{
			Group: "apiextensions.k8s.io", Plural: "customresourcedefinitions", Singular: "customresourcedefinition",
			Kind: "CustomResourceDefinition", ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			GroupPriority: 16700,
		}, "v1"),
	}
}

// Custom compiles a CustomResourceDefinition far enough for discovery.
func Custom(t testing.TB, manifest string) *resource.Definition {
	t.Helper()
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict([]byte(manifest), &crd); err != nil {
		t.Fatal(err)
	}
	names := crd.Spec.Names
	d := resource.Definition{
		Group: crd.Spec.Group, Plural: names.Plural, Singular: names.Singular, Kind: names.Kind, ListKind: names.Kind + "List",
		ShortNames: names.ShortNames, Categories: names.Categories,
		Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, GroupPriority: 1000,
	}
	writable := []string{"get", "patch", "update"}
	for _, cv := range crd.Spec.Versions {
		v := &resource.Version{Name: cv.Name, Served: cv.Served, Storage: cv.Storage}
		k := model.Kind{Group: d.Group, Version: cv.Name, Kind: d.Kind, ListKind: d.ListKind, Plural: d.Plural}
		for _, f := range cv.SelectableFields {
			k.SelectableFields = append(k.SelectableFields, f.JSONPath)
		}
		props := cv.Schema.OpenAPIV3Schema
		v.Schema = schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) { return props, nil }, k)
		if cv.Subresources != nil && cv.Subresources.Status != nil {
			v.Subresources = append(v.Subresources, resource.Subresource{Name: "status", Verbs: writable})
		}
		if cv.Subresources != nil && cv.Subresources.Scale != nil {
			v.Subresources = append(v.Subresources, resource.Subresource{Name: "scale", Verbs: writable, Kind: autoscalingv1.SchemeGroupVersion.WithKind("Scale")})
		}
		d.Versions = append(d.Versions, v)
	}
	return resource.New(d)
}

// Kites is a kind of two versions, with subresources.
const Kites = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: kites.disc.anykind.dev
spec:
  group: disc.anykind.dev
  scope: Namespaced
  names: {plural: kites, singular: kite, kind: Kite, shortNames: [ki, kt], categories: [all, toys]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        description: A Kite flies.
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            description: what is asked for
            properties:
              length: {type: integer, minimum: 1, default: 3}
              tail: {type: array, items: {type: string}}
              colors: {type: object, additionalProperties: {type: string}}
              any: {x-kubernetes-int-or-string: true}
              ref: {type: object, x-kubernetes-preserve-unknown-fields: true}
              pod: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
              nul: {type: string, nullable: true}
          status:
            type: object
            properties:
              height: {type: integer}
              replicas: {type: integer}
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.length, statusReplicasPath: .status.replicas}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
`

// Skies is a kind with a minimal definition.
const Skies = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: skies.disc.anykind.dev
spec:
  group: disc.anykind.dev
  scope: Cluster
  names: {plural: skies, singular: sky, kind: Sky}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          hue: {type: string}
    selectableFields:
    - jsonPath: .hue
`

// Catalog returns a Catalog with the native resources, Skies and Kites.
func Catalog(t testing.TB) *resource.Catalog {
	c := &resource.Catalog{}
	c.Swap(resource.NewSet(append(Native(t), Custom(t, Skies), Custom(t, Kites))))
	return c
}

// Many returns the native resources and n custom resources, ten in each group.
func Many(b testing.TB, n int) []*resource.Definition {
	out := Native(b)
	template := Custom(b, Kites)
	for i := range n {
		d := *template
		d.Group = fmt.Sprintf("g%d.disc.anykind.dev", i/10)
		d.Plural, d.Kind = fmt.Sprintf("kites%d", i), fmt.Sprintf("Kite%d", i)
		d.Versions = nil
		for _, v := range template.Versions {
			d.Versions = append(d.Versions, &resource.Version{
				Name: v.Name, Served: v.Served, Storage: v.Storage, Schema: v.Schema,
				Subresources: v.Subresources, Fingerprint: d.Plural,
			})
		}
		out = append(out, resource.New(d))
	}
	return out
}

// Ask sends a request with headers, as in "Accept: text/html".
func Ask(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request(method, target, headers))
	return w
}

func request(method, target string, headers []string) *http.Request {
	r := httptest.NewRequest(method, target, nil)
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		r.Header.Set(name, value)
	}
	return r
}

// Benchmark sends a request and counts the bytes of the answer.
func Benchmark(b *testing.B, h http.Handler, target string, headers ...string) {
	w := &Discard{}
	h.ServeHTTP(w, request("GET", target, headers))
	if w.code != 0 && w.code != 200 {
		b.Fatalf("%s: %d", target, w.code)
	}
	b.SetBytes(w.Size)
}

// Discard is a ResponseWriter that counts bytes.
type Discard struct {
	Size   int64
	header http.Header
	code   int
}

// Header implements http.ResponseWriter.
func (d *Discard) Header() http.Header {
	if d.header == nil {
		d.header = http.Header{}
	}
	return d.header
}

// WriteHeader implements http.ResponseWriter.
func (d *Discard) WriteHeader(code int) { d.code = code }

// Write implements http.ResponseWriter.
func (d *Discard) Write(p []byte) (int, error) { d.Size += int64(len(p)); return len(p), nil }
