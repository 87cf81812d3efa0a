package rest_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/crd/compile"
)

// twoVersions is a Hub that is stored in v2. Fields of its spec have defaults.
func twoVersions(t *testing.T, since int64, v1, v2 map[string]string) *resource.Definition {
	t.Helper()
	version := func(name string, defaults map[string]string) apiextensionsv1.CustomResourceDefinitionVersion {
		fields := map[string]apiextensionsv1.JSONSchemaProps{}
		for _, f := range []string{"a", "b", "c"} {
			p := apiextensionsv1.JSONSchemaProps{Type: "string"}
			if d := defaults[f]; d != "" {
				p.Default = &apiextensionsv1.JSON{Raw: []byte(`"` + d + `"`)}
			}
			fields[f] = p
		}
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v2",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object", Properties: fields}},
			}},
		}
	}
	d, err := compile.Definition(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "test.example.com", Scope: apiextensionsv1.ClusterScoped,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "hubs", Singular: "hub", Kind: "Hub", ListKind: "HubList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", v1), version("v2", v2)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	d.CompleteSince, d.CheckOnRead = since, true // as the registrar marks a kind with versions and defaults
	return d
}

// "Defaulting happens in requests to the API server using the request version
// defaults, and when reading from etcd using the storage version defaults."
func TestDefaultsOfVersions(t *testing.T) {
	s := newServerOf(t, twoVersions(t, 0, map[string]string{"a": "one"}, map[string]string{"b": "two"}))
	s.post(hubs, object1("Hub", "x", `,"spec":{}`)).is(201, `"spec":{"a":"one","b":"two"}`)
	s.get(hubs+"/x").is(200, `"spec":{"a":"one","b":"two"}`)
	s.merge(hubs+"/x", `{"spec":{"a":"set"}}`).is(200, `"spec":{"a":"set","b":"two"}`)

	// A later default shows in stored objects if it is one of the storage version.
	revision, err := s.backend.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.catalog.Swap(resource.NewSet([]*resource.Definition{
		twoVersions(t, revision+1, map[string]string{"a": "one"}, map[string]string{"b": "two", "c": "new"}),
	}))
	s.get(hubs+"/x").is(200, `"spec":{"a":"set","b":"two","c":"new"}`)
	s.catalog.Swap(resource.NewSet([]*resource.Definition{
		twoVersions(t, revision+1, map[string]string{"c": "new"}, map[string]string{"b": "two"}),
	}))
	s.get(hubs+"/x").is(200, `"spec":{"a":"set","b":"two"}`)
}

// Objects that another program stored are shown as the kind defines them, and can be updated.
func TestStoredByOthers(t *testing.T) {
	s := newServerOf(t, twoVersions(t, 0, nil, map[string]string{"b": "two"}))
	s.store("/registry/test.example.com/hubs/x", `{"apiVersion":"test.example.com/v2","kind":"Hub",
		"metadata":{"name":"x","uid":"1","creationTimestamp":"2026-01-01T00:00:00Z","unknown":1,"annotations":{"a":1,"b":"c"}},"spec":{"a":"one","unknown":1}}`)
	for _, path := range []string{hubs, strings.Replace(hubs, "/v1/", "/v2/", 1)} {
		a := s.get(path+"/x").is(200, `"spec":{"a":"one","b":"two"}`, `"generation":1`)
		if strings.Contains(a.body, "unknown") || strings.Contains(a.body, `"a":1`) {
			t.Errorf("%s: %s", path, a.body)
		}
		s.merge(path+"/x", `{"metadata":{"annotations":{"d":"e"}}}`).is(200)
	}
}
