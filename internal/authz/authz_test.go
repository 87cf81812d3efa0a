package authz

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/status"
)

// Who may do what while there are no roles, as on a v1.37 server.
func TestBootstrapPolicy(t *testing.T) {
	master := &request.User{Name: "admin", Groups: []string{"a", request.Masters, request.Authenticated}}
	bob := &request.User{Name: "bob", Groups: []string{"devs", request.Authenticated}}
	path := func(verb, path string) Attributes { return Attributes{Info: request.Info{Verb: verb, Path: path}} }
	resource := func(verb, group, resource, sub string) Attributes {
		return Attributes{Info: request.Info{IsResource: true, Verb: verb, Group: group, Resource: resource, Subresource: sub}}
	}
	for _, tt := range []struct {
		a                       Attributes
		master, bob, anon, none bool
	}{
		{path("get", "/livez"), true, true, true, false},
		{path("get", "/readyz"), true, true, true, false},
		{path("get", "/healthz"), true, true, true, false},
		{path("get", "/version"), true, true, true, false},
		{path("get", "/version/"), true, true, true, false},
		{path("get", "/livez/ping"), true, false, false, false},
		{path("get", "/healthz/"), true, false, false, false},
		{path("get", "/livezx"), true, false, false, false},
		{path("head", "/livez"), true, false, false, false},
		{path("post", "/version"), true, false, false, false},
		{path("get", "/api"), true, true, false, false},
		{path("get", "/apis"), true, true, false, false},
		{path("get", "/apis/example.com/v1"), true, true, false, false},
		{path("get", "/openapi/v3/apis/example.com/v1"), true, true, false, false},
		{path("get", "/apisx"), true, false, false, false},
		{path("get", "/"), true, false, false, false},
		{path("get", ""), true, false, false, false},
		{path("get", "/metrics"), true, false, false, false},
		{path("get", "/debug/"), true, false, false, false},
		{resource("list", "", "namespaces", ""), true, false, false, false},
		{resource("get", "example.com", "things", "status"), true, false, false, false},
		{resource("create", "authentication.k8s.io", "selfsubjectreviews", ""), true, true, false, false},
		{resource("create", "authorization.k8s.io", "selfsubjectaccessreviews", ""), true, true, false, false},
		{resource("get", "authentication.k8s.io", "selfsubjectreviews", ""), true, false, false, false},
		{resource("create", "authorization.k8s.io", "subjectaccessreviews", ""), true, false, false, false},
	} {
		for _, who := range []struct {
			u    *request.User
			want bool
		}{{master, tt.master}, {bob, tt.bob}, {&request.User{Name: request.Anonymous, Groups: []string{request.Unauthenticated}}, tt.anon}, {nil, tt.none}, {&request.User{Name: "groupless"}, tt.none}} {
			a := tt.a
			a.User = who.u
			if got, reason, err := (BootstrapPolicy{}).Authorize(context.Background(), a); got != who.want || reason != "" || err != nil {
				t.Errorf("%+v of %+v: %v %q %v, want %v", tt.a, who.u, got, reason, err, who.want)
			}
		}
	}
}

// The answers of a v1.37 server to those who may not.
func TestForbidden(t *testing.T) {
	bob := &request.User{Name: "bob"}
	for _, tt := range []struct {
		a      Attributes
		reason string
		want   string
	}{
		{Attributes{bob, request.Info{IsResource: true, Verb: "list", Resource: "namespaces"}}, "",
			`{"metadata":{},"status":"Failure","message":"namespaces is forbidden: User \"bob\" cannot list resource \"namespaces\" in API group \"\" at the cluster scope","reason":"Forbidden","details":{"kind":"namespaces"},"code":403}`},
		{Attributes{&request.User{Name: request.Anonymous}, request.Info{IsResource: true, Verb: "get", Resource: "configmaps", Namespace: "x", Name: "y"}}, "",
			`{"metadata":{},"status":"Failure","message":"configmaps \"y\" is forbidden: User \"system:anonymous\" cannot get resource \"configmaps\" in API group \"\" in the namespace \"x\"","reason":"Forbidden","details":{"name":"y","kind":"configmaps"},"code":403}`},
		{Attributes{bob, request.Info{IsResource: true, Verb: "get", Group: "codec.test", Resource: "probes", Subresource: "status", Namespace: "codec", Name: "a"}}, "",
			`{"metadata":{},"status":"Failure","message":"probes.codec.test \"a\" is forbidden: User \"bob\" cannot get resource \"probes/status\" in API group \"codec.test\" in the namespace \"codec\"","reason":"Forbidden","details":{"name":"a","group":"codec.test","kind":"probes"},"code":403}`},
		{Attributes{bob, request.Info{Verb: "get", Path: "/livez/ping"}}, "",
			`{"metadata":{},"status":"Failure","message":"forbidden: User \"bob\" cannot get path \"/livez/ping\"","reason":"Forbidden","details":{},"code":403}`},
		{Attributes{bob, request.Info{Verb: "get", Path: "/<b>&"}}, "no role",
			`{"metadata":{},"status":"Failure","message":"forbidden: User \"bob\" cannot get path \"/\u0026lt;b\u0026gt;\u0026amp;\": no role","reason":"Forbidden","details":{},"code":403}`},
		{Attributes{nil, request.Info{Verb: "get", Path: "/"}}, "",
			`{"metadata":{},"status":"Failure","message":"forbidden: User \"\" cannot get path \"/\"","reason":"Forbidden","details":{},"code":403}`},
	} {
		s := status.Of(Forbidden(tt.a, tt.reason))
		s.Kind, s.APIVersion = "", ""
		got, err := json.Marshal(s)
		if err != nil || string(got) != tt.want {
			t.Errorf("\n got %s\nwant %s", got, tt.want)
		}
	}
}
