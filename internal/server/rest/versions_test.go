package rest_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/discovery"
)

// claims is a kind with Go types whose two versions differ only in the apiVersion. storage is the
// storage version.
func claims(storage string) *resource.Definition {
	status := []resource.Subresource{{
		Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: []string{"status"},
		Revert: resource.Changing(func(obj, old map[string]any) { obj["spec"] = old["spec"] }),
	}}
	version := func(name string) *resource.Version {
		return &resource.Version{Name: name, Storage: name == storage, Subresources: status}
	}
	return kind.New(resource.Definition{
		Group: "resource.k8s.io", Plural: "resourceclaims", Singular: "resourceclaim", Kind: "ResourceClaim", Namespaced: true,
		Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
	}, kind.VersionOf[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList](version("v1")),
		kind.VersionOf[*resourcev1beta2.ResourceClaim, *resourcev1beta2.ResourceClaimList](version("v1beta2")))
}

const (
	stableClaims = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
	betaClaims   = "/apis/resource.k8s.io/v1beta2/namespaces/default/resourceclaims"
	claim        = `{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r","exactly":{"deviceClassName":"d"}}]}}}`
)

var betaClaim = strings.Replace(claim, "io/v1", "io/v1beta2", 1)

// An object that is written in one version of a built-in kind is read in the other, in JSON and
// in protobuf, whichever version is stored.
func TestVersionsOfGoTypes(t *testing.T) {
	for _, storage := range []string{"v1", "v1beta2"} {
		t.Run(storage, func(t *testing.T) { testVersionsOfGoTypes(t, storage) })
	}
}

func testVersionsOfGoTypes(t *testing.T, storage string) {
	s := newServerOf(t, claims(storage))
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{resourcev1.AddToScheme, resourcev1beta2.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	codecs := serializer.NewCodecFactory(scheme)
	d := codecs.UniversalDeserializer()
	info, _ := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), protobuf)
	send := func(method, path string, o runtime.Object, of schema.GroupVersion) answer {
		data, err := runtime.Encode(codecs.EncoderForVersion(info.Serializer, of), o)
		if err != nil {
			t.Fatal(err)
		}
		return s.accept(protobuf, method, path, protobuf, string(data))
	}
	before := fmt.Sprint(listMeta(s.get(stableClaims))["resourceVersion"])

	s.post(betaClaims, betaClaim).is(201, `"apiVersion":"resource.k8s.io/v1beta2"`)
	s.post(stableClaims, claim).is(409)
	s.post(stableClaims, betaClaim).message(400, "the API version in the data (resource.k8s.io/v1beta2) does not match the expected API version (resource.k8s.io/v1)")
	s.storedAs("/registry/resourceclaims/default/c", "resource.k8s.io/"+storage)

	v1 := s.accept(protobuf, "GET", stableClaims+"/c", "", "").is(200).typed(d, protobuf).(*resourcev1.ResourceClaim)
	beta := s.accept(protobuf, "GET", betaClaims+"/c", "", "").is(200).typed(d, protobuf).(*resourcev1beta2.ResourceClaim)
	if v1.UID != beta.UID || v1.Spec.Devices.Requests[0].Exactly.DeviceClassName != "d" || beta.Spec.Devices.Requests[0].Exactly.DeviceClassName != "d" {
		t.Errorf("read %v and %v", v1, beta)
	}
	for _, path := range []string{stableClaims, betaClaims} {
		inJSON := s.get(path+"/c").typed(d, "application/json")
		if got := s.accept(protobuf, "GET", path+"/c", "", "").typed(d, protobuf); !reflect.DeepEqual(got, inJSON) {
			t.Errorf("%s\n got %+v\nwant %+v", path, got, inJSON)
		}
	}

	was := beta.DeepCopy()
	beta.Labels = map[string]string{"by": "beta"}
	send("PUT", betaClaims+"/c", beta, resourcev1beta2.SchemeGroupVersion).is(200)
	s.get(stableClaims+"/c").is(200, `"by":"beta"`, `"apiVersion":"resource.k8s.io/v1"`)
	s.do("PATCH", stableClaims+"/c/status", "application/strategic-merge-patch+json", `{"status":{"reservedFor":[{"resource":"pods","name":"p","uid":"u"}]}}`).is(200)
	s.get(betaClaims+"/c").is(200, `"reservedFor":[{"name":"p","resource":"pods","uid":"u"}]`)
	s.storedAs("/registry/resourceclaims/default/c", "resource.k8s.io/"+storage)
	stableList := s.accept(protobuf, "GET", stableClaims, "", "").is(200).typed(d, protobuf).(*resourcev1.ResourceClaimList)
	betaList := s.accept(protobuf, "GET", betaClaims, "", "").is(200).typed(d, protobuf).(*resourcev1beta2.ResourceClaimList)
	if len(stableList.Items) != 1 || len(betaList.Items) != 1 || betaList.Items[0].Labels["by"] != "beta" {
		t.Errorf("listed %v and %v", stableList, betaList)
	}
	for path, want := range map[string]runtime.Object{stableClaims: v1, betaClaims: was} {
		events := s.events(d, protobuf, path+"?watch=1&resourceVersion="+before)
		if got := events[0]; got.Type != "ADDED" || !reflect.DeepEqual(got.Object.Object, want) {
			t.Errorf("%s: %s %+v, want %+v", path, got.Type, got.Object.Object, want)
		}
		if got := events[1]; got.Type != "MODIFIED" || reflect.TypeOf(got.Object.Object) != reflect.TypeOf(want) {
			t.Errorf("%s: %s %+v", path, got.Type, got.Object.Object)
		}
	}
	var hashes []string
	for _, version := range []string{"v1", "v1beta2"} {
		w := httptest.NewRecorder()
		discovery.New(s.catalog, discovery.Options{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/apis/resource.k8s.io/"+version, nil))
		told := answer{t, w.Code, nil, w.Body.String()}
		told.is(200, `"resourceclaims/status"`)
		hashes = append(hashes, regexp.MustCompile(`"storageVersionHash":"([^"]+)"`).FindString(told.body))
	}
	if hashes[0] == "" || hashes[0] != hashes[1] {
		t.Errorf("discovery tells %q", hashes)
	}
	s.delete(betaClaims+"/c", "").is(200)
	s.get(stableClaims + "/c").is(404)
}

// A version may keep leniencies that its successor dropped: a PUT without resourceVersion, and a
// delete that is answered with the object.
func TestLenientVersion(t *testing.T) {
	s := newServerOf(t, kind.New(
		resource.Definition{Group: "resource.k8s.io", Plural: "resourceclaims", Singular: "resourceclaim", Kind: "ResourceClaim", Namespaced: true},
		kind.VersionOf[*resourcev1.ResourceClaim, *resourcev1.ResourceClaimList](&resource.Version{Name: "v1"}),
		kind.VersionOf[*resourcev1beta2.ResourceClaim, *resourcev1beta2.ResourceClaimList](&resource.Version{Name: "v1beta2"}).Stored().Lenient()))
	s.post(stableClaims, claim).is(201)
	s.put(stableClaims+"/c", claim).is(422, "must be specified for an update")
	s.put(betaClaims+"/c", betaClaim).is(200)
	s.delete(betaClaims+"/c", "").is(200, `"kind":"ResourceClaim"`)
	s.post(stableClaims, claim).is(201)
	s.delete(stableClaims+"/c", "").is(200, `"kind":"Status"`)
}

// storedAs fails unless the object under a key is stored in apiVersion.
func (s *server) storedAs(key, apiVersion string) {
	s.t.Helper()
	record, err := s.backend.Get(s.t.Context(), key, 0)
	var stored metav1.TypeMeta
	if err == nil {
		err = json.Unmarshal(record.Value, &stored)
	}
	if err != nil || stored.APIVersion != apiVersion {
		s.t.Errorf("stored is %v, want %s, %v", stored, apiVersion, err)
	}
}

// Field owners stay the same when another manager applies in another version.
func TestApplyInVersionsOfGoTypes(t *testing.T) {
	s := newServerOf(t, claims("v1"))
	one := func(version, spec string) string {
		return fmt.Sprintf(`{"apiVersion":"resource.k8s.io/%s","kind":"ResourceClaim","metadata":{"name":"c"},"spec":{"devices":{"requests":[{"name":"r"%s}]}}}`, version, spec)
	}
	s.apply(betaClaims+"/c", "ann", one("v1beta2", `,"exactly":{"deviceClassName":"d"}`)).is(201)
	s.apply(stableClaims+"/c", "bob", one("v1", `,"exactly":{"deviceClassName":"e"}`)).
		message(409, `Apply failed with 1 conflict: conflict with "ann": .spec.devices.requests`)
	s.apply(stableClaims+"/c", "bob", one("v1", `,"exactly":{"deviceClassName":"e"}`), "&force=true").is(200, `"deviceClassName":"e"`)
	s.apply(betaClaims+"/c", "bob", `{"apiVersion":"resource.k8s.io/v1beta2","kind":"ResourceClaim","metadata":{"name":"c","labels":{"a":"b"}}}`).
		is(200, `"a":"b"`, `{"apiVersion":"resource.k8s.io/v1beta2","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:labels":{"f:a":{}}}},"manager":"bob"`)
}
