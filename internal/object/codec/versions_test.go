package codec_test

import (
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/object/codec"
)

// An object in one of several equivalent versions is accepted as one of the first, and rejected
// in others.
func TestVersionsOfAKind(t *testing.T) {
	x := codec.Expect{
		Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), New: func() runtime.Object { return &policyv1.Eviction{} },
		Alike: []string{"v1", "v1beta1"},
	}
	beta := policyv1beta1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "a"}, DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: new(int64(5))}}
	raw, err := beta.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	message, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "policy/v1beta1", Kind: "Eviction"}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for name, sent := range map[string]struct {
		media codec.Media
		data  string
	}{
		"v1":                  {codec.JSON, `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"a"},"deleteOptions":{"gracePeriodSeconds":5}}`},
		"v1beta1":             {codec.JSON, `{"apiVersion":"policy/v1beta1","kind":"Eviction","metadata":{"name":"a"},"deleteOptions":{"gracePeriodSeconds":5}}`},
		"none":                {codec.JSON, `{"metadata":{"name":"a"},"deleteOptions":{"gracePeriodSeconds":5}}`},
		"v1beta1 as protobuf": {codec.Protobuf, "k8s\x00" + string(message)},
	} {
		tree, _, err := codec.DecodeObject(sent.media, []byte(sent.data), x)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		options, _ := tree["deleteOptions"].(map[string]any)
		if tree["apiVersion"] != "policy/v1" || tree["kind"] != "Eviction" || options["gracePeriodSeconds"] != int64(5) {
			t.Errorf("%s: %v", name, tree)
		}
	}
	for _, other := range []string{`"policy/v2"`, `"v1"`, `"other/v1beta1"`} {
		if tree, _, err := codec.DecodeObject(codec.JSON, []byte(`{"apiVersion":`+other+`,"kind":"Eviction"}`), x); err == nil {
			t.Errorf("%s is taken: %v", other, tree)
		}
	}
}
