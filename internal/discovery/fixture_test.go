package discovery

import (
	"reflect"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
)

// nativeDefinition is a resource with a Go type.
func nativeDefinition[T, L any](t testing.TB, d resource.Definition, version string) *resource.Definition {
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
	d.Versions = []*resource.Version{v}
	return resource.New(d)
}

func nativeDefinitions(t testing.TB) []*resource.Definition {
	return []*resource.Definition{
		nativeDefinition[corev1.Namespace, corev1.NamespaceList](t, resource.Definition{
			Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ShortNames: []string{"ns"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"}, GroupPriority: 18000,
		}, "v1"),
		nativeDefinition[corev1.ConfigMap, corev1.ConfigMapList](t, resource.Definition{
			Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", ShortNames: []string{"cm"},
			Namespaced: true, GroupPriority: 18000,
		}, "v1"),
		nativeDefinition[coordinationv1.Lease, coordinationv1.LeaseList](t, resource.Definition{
			Group: "coordination.k8s.io", Plural: "leases", Singular: "lease", Kind: "Lease",
			Namespaced: true, GroupPriority: 16500,
		}, "v1"),
		nativeDefinition[apiextensionsv1.CustomResourceDefinition, apiextensionsv1.CustomResourceDefinitionList](t, resource.Definition{
			Group: "apiextensions.k8s.io", Plural: "customresourcedefinitions", Singular: "customresourcedefinition",
			Kind: "CustomResourceDefinition", ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
			GroupPriority: 16700,
		}, "v1"),
	}
}

// custom compiles a CustomResourceDefinition as far as discovery looks at it.
func custom(t testing.TB, manifest string) *resource.Definition {
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
			v.Subresources = append(v.Subresources, resource.Subresource{Name: "scale", Verbs: writable, Kind: scaleKind})
		}
		d.Versions = append(d.Versions, v)
	}
	return resource.New(d)
}

const kites = `
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

const skies = `
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
