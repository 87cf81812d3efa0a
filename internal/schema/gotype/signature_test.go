package gotype_test

import (
	"reflect"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/schema/gotype"
)

// Versions of a kind have equal signatures if their Go types differ only in their names, and different
// ones if they differ in a field or in omitempty.
func TestSignature(t *testing.T) {
	type a struct {
		X string `json:"x,omitempty"`
		Y *int32 `json:"y"`
	}
	type likeA struct {
		Z *int32 `json:"y"`
		X string `json:"x,omitempty"`
	}
	type written struct {
		X string `json:"x"`
		Y *int32 `json:"y"`
	}
	type value struct {
		X string `json:"x,omitempty"`
		Y int32  `json:"y"`
	}
	for _, row := range []struct {
		one, other reflect.Type
		same       bool
	}{
		{reflect.TypeFor[a](), reflect.TypeFor[likeA](), true},
		{reflect.TypeFor[a](), reflect.TypeFor[written](), false},
		{reflect.TypeFor[a](), reflect.TypeFor[value](), false},
		{reflect.TypeFor[[]a](), reflect.TypeFor[map[string]a](), false},
		{reflect.TypeFor[resourcev1.ResourceSlice](), reflect.TypeFor[resourcev1beta2.ResourceSlice](), true},
		{reflect.TypeFor[resourcev1.ResourceSlice](), reflect.TypeFor[resourcev1beta1.ResourceSlice](), false},
		{reflect.TypeFor[resourcev1.DeviceClass](), reflect.TypeFor[resourcev1beta1.DeviceClass](), true},
		{reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), reflect.TypeFor[apiextensionsv1.JSONSchemaProps](), true},
	} {
		if got := gotype.Signature(row.one) == gotype.Signature(row.other); got != row.same {
			t.Errorf("%s and %s: %t", row.one, row.other, got)
		}
	}
}
