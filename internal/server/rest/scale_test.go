package rest_test

import (
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/schema/crd/compile"
)

// newScaled returns a server for a cluster-scoped kind whose replicas are at spec.n in v1 and at
// spec.count in v2.
func newScaled(t *testing.T) *server {
	t.Helper()
	version := func(name, replicas string) apiextensionsv1.CustomResourceDefinitionVersion {
		selector := ".status.selector"
		anything := true
		stanza := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}
		return apiextensionsv1.CustomResourceDefinitionVersion{
			Name: name, Served: true, Storage: name == "v1",
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": stanza, "status": stanza},
			}},
			Subresources: &apiextensionsv1.CustomResourceSubresources{
				Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
				Scale: &apiextensionsv1.CustomResourceSubresourceScale{
					SpecReplicasPath: ".spec." + replicas, StatusReplicasPath: ".status." + replicas, LabelSelectorPath: &selector,
				},
			},
		}
	}
	d, err := compile.Definition(&apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "test.example.com", Scope: apiextensionsv1.ClusterScoped,
		Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "hubs", Singular: "hub", Kind: "Hub", ListKind: "HubList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version("v1", "n"), version("v2", "count")},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return newServerOf(t, d)
}

func hubWith(name, spec string) string { return object1("Hub", name, `,"spec":`+spec) }

// scaleOf returns the replicas of a Scale.
func scaleOf(a answer) string {
	t := a.tree()
	return string(object.AppendJSON(nil, object.Tree{"kind": t["apiVersion"].(string) + " " + object.Kind(t), "spec": t["spec"], "status": t["status"]}))
}

// "The scale subresource shows autoscaling/v1 Scale, whatever the kind calls its
// fields."
func TestScale(t *testing.T) {
	s := newScaled(t)
	s.post(hubs, hubWith("a", `{"n":3}`)).is(201)
	s.merge(hubs+"/a/status", `{"status":{"n":2,"selector":"app=a"}}`).is(200)
	const want = `{"kind":"autoscaling/v1 Scale","spec":{"replicas":3},"status":{"replicas":2,"selector":"app=a"}}`
	shown := s.get(hubs + "/a/scale").is(200)
	if got := scaleOf(shown); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	whole := s.get(hubs + "/a").tree()
	if revision := object.ResourceVersion(shown.tree()); revision != object.ResourceVersion(whole) {
		t.Errorf("resourceVersion %s, that of the object is %s", revision, object.ResourceVersion(whole))
	}

	scaled := strings.Replace(shown.body, `"replicas":3`, `"replicas":5`, 1)
	s.put(hubs+"/a/scale", scaled).is(200, `"replicas":5`)
	s.put(hubs+"/a/scale", scaled).is(409, "the object has been modified")
	s.merge(hubs+"/a/scale", `{"spec":{"replicas":6},"status":{"replicas":9}}`).is(200, `"replicas":6`, `"status":{"replicas":2,`)
	s.do("PATCH", hubs+"/a/scale", "application/json-patch+json", `[{"op":"replace","path":"/spec/replicas","value":7}]`).is(200)
	s.get(hubs+"/a").is(200, `"spec":{"n":7}`, `"generation":4`)
	s.merge(hubs+"/a/scale", `{"spec":{"replicas":"x"}}`).is(422, "cannot unmarshal string into Go struct field ScaleSpec.spec.replicas of type int32")
	for _, other := range []string{`{"kind":"X"}`, `{"apiVersion":"v9"}`, `{"kind":"Hub","apiVersion":"test.example.com/v1"}`} {
		s.merge(hubs+"/a/scale", other).is(422, `"field":"patch"`, "no kind ", " is registered for version ")
	}
	s.merge(hubs+"/a/scale", `{"kind":null,"apiVersion":""}`).is(200, `"kind":"Scale"`)
	s.merge(hubs+"/none/scale", `{"spec":{"replicas":1}}`).is(404)
	s.put(hubs+"/a/scale", strings.Replace(scaled, `"name":"a"`, `"name":"b"`, 1)).is(400, "the name of the object (b) does not match the name on the URL (a)")
	s.put(hubs+"/none/scale", scaled).is(400, "the name of the object (a) does not match the name on the URL (none)")
	s.delete(hubs+"/a/scale", "").is(405)

	// A v2 client finds the replicas at the path of v2.
	v2 := strings.Replace(hubs, "/v1/", "/v2/", 1)
	s.merge(v2+"/a/scale", `{"spec":{"replicas":8}}`).is(200, `"replicas":8`)
	s.get(hubs+"/a").is(200, `"spec":{"count":8,"n":7}`)
}

// An object without replicas has no Scale, and an update of its Scale must set them.
func TestScaleWithoutReplicas(t *testing.T) {
	s := newScaled(t)
	s.post(hubs, hubWith("a", `{}`)).is(201)
	s.get(hubs+"/a/scale").message(500, `Internal error occurred: the spec replicas field ".spec.n" does not exist`)
	s.merge(hubs+"/a/scale", `{"metadata":{"labels":{"a":"b"}}}`).message(400, `the spec replicas field ".spec.n" cannot be empty`)
	s.merge(hubs+"/a/scale", `{"spec":{"replicas":1}}`).is(200)
	s.get(hubs+"/a").is(200, `"spec":{"n":1}`)

	for spec, wrong := range map[string]string{
		`{"n":"many"}`:     `.spec.n: Invalid value: 0: .spec.n accessor error: many is of the type string, expected int64`,
		`{"n":-1}`:         `.spec.n: Invalid value: -1: should be a non-negative integer`,
		`{"n":2147483648}`: `.spec.n: Invalid value: 2147483648: should be less than or equal to 2147483647`,
	} {
		s.post(hubs, hubWith("b", spec)).message(422, `Hub.test.example.com "b" is invalid: `+wrong)
	}
	s.merge(hubs+"/a/scale", `{"spec":{"replicas":-1}}`).is(422, "should be a non-negative integer")
	s.merge(hubs+"/a/status", `{"status":{"n":-1,"selector":1}}`).is(422, ".status.n: Invalid value: -1", ".status.selector accessor error: 1 is of the type int64, expected string")
	s.do("PATCH", hubs+"/a/scale", "application/strategic-merge-patch+json", `{}`).is(415)
}

// The manager of a Scale's replicas owns the field of the object, and the reverse. Kubernetes
// does the same for built-in kinds; its custom kinds cannot be scaled by an apply.
func TestScaleOwners(t *testing.T) {
	s := newScaled(t)
	s.do("PATCH", hubs+"/a?fieldManager=owner", "application/apply-patch+yaml", hubWith("a", `{"n":1}`)).is(201)
	apply := `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":2}}`
	s.do("PATCH", hubs+"/a/scale?fieldManager=scaler", "application/apply-patch+yaml", apply).is(409, `conflict with \"owner\": .spec.replicas`)
	s.do("PATCH", hubs+"/a/scale?fieldManager=scaler&force=true", "application/apply-patch+yaml", apply).is(200, `"replicas":2`)
	s.get(hubs + "/a").is(200).managers(`scaler Apply {"f:spec":{"f:n":{}}}`)
	s.apply(hubs+"/a/scale", "scaler", apply).is(200)
	s.apply(hubs+"/a/scale", "another", apply).is(200)
	s.get(hubs+"/a").is(200, `"subresource":"scale"`).managers(`another Apply {"f:spec":{"f:n":{}}}`, `scaler Apply {"f:spec":{"f:n":{}}}`)
	// Applying a Scale without replicas gives up the field.
	s.apply(hubs+"/a/scale", "another", strings.Replace(apply, `,"spec":{"replicas":2}`, ``, 1)).is(200, `"replicas":2`)
	s.get(hubs+"/a").is(200, `"n":2`).managers(`scaler Apply {"f:spec":{"f:n":{}}}`)
	s.do("PATCH", hubs+"/a?fieldManager=owner", "application/apply-patch+yaml", hubWith("a", `{"n":1}`)).is(409, `conflict with \"scaler\" with subresource \"scale\"`, ".spec.n")
	s.do("PATCH", hubs+"/a/scale?fieldManager=scaler", "application/apply-patch+yaml", strings.Replace(apply, `"a"`, `"none"`, 1)).is(400)
	s.do("PATCH", hubs+"/none/scale?fieldManager=scaler", "application/apply-patch+yaml", strings.Replace(apply, `"a"`, `"none"`, 1)).is(404)
}
