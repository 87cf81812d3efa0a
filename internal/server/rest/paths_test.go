package rest_test

import (
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
)

// namespaces is the kind Namespace.
func namespaces() *resource.Definition {
	return resource.New(resource.Definition{
		Plural: "namespaces", Singular: "namespace", Kind: "Namespace", ListKind: "NamespaceList", StoragePrefix: "/registry/namespaces/",
		Versions: []*resource.Version{{
			Name: "v1", Served: true, Storage: true, Schema: schemaOf("Namespace"),
			Subresources: []resource.Subresource{{Name: "status", Verbs: []string{"get", "patch", "update"}}},
		}},
	})
}

// nowhere checks that a path answers 404, whatever the method.
func (s *server) nowhere(path string, methods ...string) {
	s.t.Helper()
	if len(methods) == 0 {
		methods = []string{"GET", "POST", "PUT", "PATCH", "DELETE"}
	}
	for _, method := range methods {
		if a := s.do(method, path, mergePatch, `{}`); a.code != 404 || strings.TrimSpace(a.body) != "404 page not found" {
			s.t.Errorf("%s %s: %d %s", method, path, a.code, a.body)
		}
	}
}

// "CVE-2019-11247 a cluster-scoped kind through a namespaced path: 404, and the
// reverse, all-namespace list excepted."
func TestPathsOfOtherScopes(t *testing.T) {
	s := newServerOf(t, lead(), hub(), namespaces())
	s.post(hubs, object1("Hub", "h")).is(201)
	s.post(leads, named("a")).is(201)
	s.post("/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`).is(201)
	const in = "/apis/test.example.com/v1/namespaces/default"
	for _, path := range []string{
		in + "/hubs", in + "/hubs?watch=1", in + "/hubs/h", in + "/hubs/h/status",
		strings.Replace(in, "/v1/", "/v1/watch/", 1) + "/hubs",
		all + "/a", all + "/a/status",
		"/api/v1/namespaces/n/namespaces", "/api/v1/namespaces/other/namespaces/n",
		"/api/v1/namespaces/n/namespaces/n", "/api/v1/namespaces/other/namespaces/n/status",
	} {
		s.nowhere(path)
	}
	s.nowhere(all, "POST", "PUT", "PATCH", "DELETE")
	s.get(all).is(200)
	s.get("/api/v1/namespaces/n").is(200)
	s.get("/api/v1/namespaces/n/status").is(200)
}

// Unknown versions, groups and resources are not served.
func TestPathsThatLeadNowhere(t *testing.T) {
	s := newServer(t)
	for _, path := range []string{
		"/apis/test.example.com/v2/leads", "/apis/other.example.com/v1/leads", "/api/v1/leads",
		"/apis/test.example.com/v1/nothings", "/nothing", "/",
		"/apis//test.example.com/v1/leads", "/apis/test.example.com//v1/leads", "/apis/test.example.com/v1//leads", "/" + all, "/" + leads + "/a",
	} {
		s.nowhere(path)
	}
	// A subresource that the kind does not declare has another message.
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		s.do(method, leads+"/a/nothing", mergePatch, `{}`).message(404, `leads.test.example.com "a" not found`)
		s.do(method, leads+"//a", mergePatch, `{}`).message(404, `leads.test.example.com "" not found`)
	}
	// A path below a subresource is not served. Kubernetes ignores the rest of such a path for
	// custom kinds, but not for its own.
	s.post(leads, named("a")).is(201)
	s.get(leads + "/a/status/").is(200)
	for _, more := range []string{"/status/x", "/status/x/y", "//status"} {
		s.get(leads+"/a"+more).message(404, `leads.test.example.com "a" not found`)
		s.put(leads+"/a"+more, named("a")).message(404, `leads.test.example.com "a" not found`)
	}
}

// In groups with native kinds, the message is Kubernetes' for those groups.
func TestPathsThatLeadNowhereInNativeGroups(t *testing.T) {
	d := namespaces()
	d.Dialect, d.Versions[0].New = resource.CompiledIn, func() runtime.Object { return &corev1.Namespace{} }
	s := newServerOf(t, lead(), d)
	for _, path := range []string{"/api/v1/nothings", "/api/v1/nothings/n", "/api/v1/namespaces/n/nothings", "/api/v2/namespaces", "/api/v1/namespaces/n/nothing/x"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
			s.do(method, path, mergePatch, `{}`).is(404, `"message":"the server could not find the requested resource"`, `"reason":"NotFound"`, `"details":{}`)
		}
	}
	s.nowhere("/apis/test.example.com/v1/nothings")
	// Such a path is outside the roots of the API.
	for _, path := range []string{"//api/v1/namespaces/n", "///api/v1/namespaces", "/apis//v1/namespaces"} {
		s.nowhere(path)
	}
}

// Kubernetes has no route for some methods on its own kinds. Custom kinds have routes for all
// methods, which name the unsupported one.
func TestMethodsThatLeadNowhere(t *testing.T) {
	d := namespaces()
	d.Dialect, d.Versions[0].New = resource.CompiledIn, func() runtime.Object { return &corev1.Namespace{} }
	s := newServerOf(t, lead(), d)
	const all = "/api/v1/namespaces"
	s.post(all, `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"n"}}`).is(201)
	for path, methods := range map[string][]string{
		all:                {"PUT", "PATCH", "OPTIONS", "TRACE"},
		all + "/n":         {"POST", "OPTIONS"},
		all + "/n/status":  {"POST", "DELETE"},
		all + "?watch=1":   {"PUT", "PATCH"},
		all + "/n?watch=1": {"POST"},
	} {
		for _, method := range methods {
			s.do(method, path, mergePatch, `{}`).is(405,
				`"message":"the server does not allow this method on the requested resource"`, `"reason":"MethodNotAllowed"`, `"details":{}`)
		}
	}
	// Only GET watches by path.
	const watch = "/api/v1/watch/namespaces"
	for _, path := range []string{watch, watch + "/n"} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
			s.do(method, path, mergePatch, `{}`).is(405, `"message":"the server does not allow this method on the requested resource"`)
		}
	}
	// A namespaced kind is listed across namespaces and written in one.
	for _, method := range []string{"POST", "PUT", "PATCH", "DELETE", "OPTIONS"} {
		native := newServerOf(t, builtin.Definitions()...)
		native.do(method, "/api/v1/services", mergePatch, `{}`).is(405, `"message":"the server does not allow this method on the requested resource"`)
		native.do(method, "/api/v1/services/x", mergePatch, `{}`).is(404, `"message":"the server could not find the requested resource"`)
	}
	for _, path := range []string{all, all + "/n", watch} {
		if a := s.do("HEAD", path, "", ""); a.code != 405 {
			t.Errorf("HEAD %s: %d", path, a.code)
		}
	}
	s.post(leads+"/a", named("b")).message(400, "the name of the object (b) does not match the name on the URL (a)")
	s.post(leads+"/a", named("a")).is(201)
	for _, method := range []string{"GET", "POST", "DELETE"} {
		s.do(method, strings.Replace(leads, "/v1/", "/v1/proxy/", 1)+"/a", mergePatch, `{}`).message(405, `proxy is not supported on resources of kind "leads.test.example.com"`)
		s.do(method, strings.Replace(all, "/v1/", "/v1/proxy/", 1)+"/n", mergePatch, `{}`).is(404, `"message":"the server could not find the requested resource"`)
	}
	s.do("OPTIONS", leads, "", "").message(405, ` is not supported on resources of kind "leads.test.example.com"`)
}

// "CVE-2022-3162 `.`/`..` in a namespace or key reads another resource: rejected;
// prefixes end in `/`; continue keys too."
func TestPathsOfOtherKeys(t *testing.T) {
	s := newServer(t)
	s.post(hubs, object1("Hub", "h")).is(201)
	s.post(leads, named("a")).is(201)
	other := strings.Replace(leads, "default", "default2", 1)
	s.post(other, named("b")).is(201)
	for _, element := range []string{"%2e", "%2e%2e", "..", "%2e%2e%2fhubs", "..%2fhubs%2fh", "%2f"} {
		s.nowhere(strings.Replace(leads, "default", element, 1))
		s.nowhere(strings.Replace(leads, "default", element, 1) + "/h")
	}
	// A name that is not one path segment never exists, and a segment after the name is a
	// subresource, whatever its text.
	for _, element := range []string{"%2e", "%2e%2e", ".", "..", "a%25b", "%25"} {
		name, _ := url.PathUnescape(element)
		invalid := `Name parameter invalid: \"` + name + `\": may not `
		for _, path := range []string{leads + "/" + element, leads + "/" + element + "/status"} {
			s.get(path).is(400, invalid)
			s.merge(path, `{}`).is(400, invalid)
			s.put(path, named(name)).is(400, invalid)
			s.put(path, named("a")).message(400, "the name of the object (a) does not match the name on the URL ("+name+")")
		}
		s.delete(leads+"/"+element, "").is(400, invalid)
		s.do("PATCH", leads+"/"+element+"?fieldManager=m", "application/apply-patch+yaml", named(name)).is(400, invalid)
	}
	for _, element := range []string{"%2e%2e%2fhubs", "..%2fhubs%2fh", "%2e%2e/hubs/h"} {
		for _, method := range []string{"GET", "PUT", "PATCH", "DELETE"} {
			s.do(method, leads+"/"+element, mergePatch, `{}`).message(404, `leads.test.example.com ".." not found`)
		}
	}
	if names := s.get(leads + "/%2f").is(200).names(); names != "a" {
		t.Errorf("the list at a slash has %s", names)
	}
	for _, name := range []string{".", "..", "../hubs/h", "a/b", "a%2fb"} {
		s.post(leads, named(name)).is(422, "metadata.name")
	}
	s.post(leads, `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"x","namespace":".."}}`).is(400)
	if names := s.get(leads).names(); names != "a" {
		t.Errorf("in the namespace are %s", names)
	}

	revision := listMeta(s.get(leads))["resourceVersion"]
	for _, start := range []string{"", ".", "..", "../hubs/", "../default2/", "../../hubs/", "x/../../hubs/", "/", "./a", "a//b"} {
		s.get(leads+"?continue="+continueToken(revision, start)).is(400, "invalid continue token")
	}
	for _, start := range []string{"0", "..\x00", "\x00", "\xff"} { // merely unusual
		if a := s.get(leads + "?continue=" + continueToken(revision, start)).is(200); a.names() != "a" && a.names() != "" {
			t.Errorf("a list that begins at %q has %s", start, a.names())
		}
	}
}
