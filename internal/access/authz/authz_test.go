package authz

import (
	"encoding/json"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// The messages are those of kube-apiserver.
func TestForbidden(t *testing.T) {
	bob := &request.User{Name: "bob"}
	for _, tt := range []struct {
		a      Attributes
		reason string
		want   string
	}{
		{Attributes{User: bob, Info: request.Info{IsResource: true, Verb: "list", Resource: "namespaces"}}, "",
			`{"metadata":{},"status":"Failure","message":"namespaces is forbidden: User \"bob\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope","reason":"Forbidden","details":{"kind":"namespaces"},"code":403}`},
		{Attributes{User: &request.User{Name: request.Anonymous}, Info: request.Info{IsResource: true, Verb: "get", Resource: "configmaps", Namespace: "x", Name: "y"}}, "",
			`{"metadata":{},"status":"Failure","message":"configmaps \"y\" is forbidden: User \"system:anonymous\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"x\"","reason":"Forbidden","details":{"name":"y","kind":"configmaps"},"code":403}`},
		{Attributes{User: bob, Info: request.Info{IsResource: true, Verb: "get", Group: "codec.test", Resource: "probes", Subresource: "status", Namespace: "codec", Name: "a"}}, "",
			`{"metadata":{},"status":"Failure","message":"probes.codec.test \"a\" is forbidden: User \"bob\" cannot get resource \"probes/status\" in API group \"codec.test\" in the namespace \"codec\"","reason":"Forbidden","details":{"name":"a","group":"codec.test","kind":"probes"},"code":403}`},
		{Attributes{User: bob, Info: request.Info{Verb: "get", Path: "/livez/ping"}}, "",
			`{"metadata":{},"status":"Failure","message":"forbidden: User \"bob\" cannot get path \"/livez/ping\"","reason":"Forbidden","details":{},"code":403}`},
		{Attributes{User: bob, Info: request.Info{Verb: "get", Path: "/<b>&"}}, "no role",
			`{"metadata":{},"status":"Failure","message":"forbidden: User \"bob\" cannot get path \"/\u0026lt;b\u0026gt;\u0026amp;\": no role","reason":"Forbidden","details":{},"code":403}`},
		{Attributes{Info: request.Info{Verb: "get", Path: "/"}}, "",
			`{"metadata":{},"status":"Failure","message":"forbidden: User \"\" cannot get path \"/\"","reason":"Forbidden","details":{},"code":403}`},
	} {
		s := status.Of(Forbidden(&tt.a, tt.reason))
		s.Kind, s.APIVersion = "", ""
		got, err := json.Marshal(s)
		if err != nil || string(got) != tt.want {
			t.Errorf("\n got %s\nwant %s", got, tt.want)
		}
	}
}
