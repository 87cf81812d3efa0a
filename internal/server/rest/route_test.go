package rest_test

import (
	"fmt"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object/resource"
)

// A kind that routes methods warns about a deprecated version only if the request has a route.
// Other kinds warn in every answer below their path.
func TestWarningOfVersion(t *testing.T) {
	routed, custom := hub(), lead()
	routed.Dialect = resource.CompiledIn
	for _, d := range []*resource.Definition{routed, custom} {
		d.Versions[0].Deprecated, d.Versions[0].DeprecationWarning = true, "is old"
	}
	s := newServerOf(t, routed, custom)
	for _, tt := range []struct {
		accept, method, path, contentType string
		code                              int
		warns                             bool
	}{
		{"", "GET", hubs + "/x", "", 404, true},
		{"", "PUT", hubs + "/x", "bogus/x", 415, true},
		{"", "TRACE", hubs + "/x", "", 405, false},
		{"", "HEAD", hubs + "/x", "", 405, false},
		{"bogus/x", "GET", hubs + "/x", "", 406, false},
		{"bogus/x", "PATCH", hubs + "/x", "bogus/x", 415, false},
		{"", "GET", hubs + "/x/nope", "", 404, false},
		{"", "TRACE", leads + "/x", "", 405, true},
		{"bogus/x", "GET", leads + "/x", "", 406, true},
		{"", "GET", leads + "/x/nope", "", 404, true},
	} {
		a := s.accept(tt.accept, tt.method, tt.path, tt.contentType, "")
		if warns := a.header.Get("Warning") != ""; a.code != tt.code || warns != tt.warns {
			t.Errorf("%s %s, for %q: %d, warning: %t, want %d, %t", tt.method, tt.path, tt.accept, a.code, warns, tt.code, tt.warns)
		}
	}
}

// A write reports its own errors before the error that its answer cannot be shown, and stores
// nothing in either case.
func TestAnswerThatCannotBeShown(t *testing.T) {
	s := newServer(t)
	s.make("a")
	asList, created := "application/json"+asMetadatas, s.get(leads+"/a").body
	const bogus = "?includeObject=bogus"
	for _, tt := range []struct {
		accept, method, path, body string
		code                       int
	}{
		{asList, "PUT", leads + "/a", `{`, 400},
		{asList, "PUT", leads + "/nope", named("nope"), 404},
		{asList, "PUT", leads + "/a", named("a", `,"metadata":{"name":"a","resourceVersion":"1"}`), 409},
		{asList, "POST", leads, named("a"), 409},
		{asList, "POST", leads, named("b"), 406},
		{asList, "POST", leads + "?dryRun=All", named("b"), 406},
		{asList, "DELETE", leads + "/nope", "", 404},
		{asList, "DELETE", leads + "/a", "", 406},
		{"application/json" + asTable, "POST", leads + bogus, named("b"), 400},
		{"application/json" + asTable, "DELETE", leads + bogus, "", 400},
		{"application/json" + asTable, "DELETE", leads + "/nope" + bogus, "", 404},
		{"application/json" + asTable, "GET", leads + "/nope" + bogus, "", 404},
	} {
		if got := s.accept(tt.accept, tt.method, tt.path, "application/json", tt.body); got.code != tt.code {
			t.Errorf("%s %s, for %q: %d, want %d: %s", tt.method, tt.path, tt.accept, got.code, tt.code, got.body)
		}
	}
	if got := s.get(leads); got.names() != "a" || s.get(leads+"/a").body != created {
		t.Errorf("was changed: %s", got.body)
	}
	for query, message := range map[string]string{
		"labelSelector=%3D%3D": "found '==', expected",
		"limit=x":              "strconv.ParseInt",
		"continue=x":           "invalid continue token",
		"resourceVersion=x":    "invalid resource version",
		"":                     "Unable to convert to Table as requested: includeObject",
	} {
		s.accept("application/json"+asTable, "GET", leads+bogus+"&"+query, "", "").is(400, message)
	}
	s.accept("application/yaml", "GET", leads+"?watch=1&fieldSelector=x%3Dy", "", "").is(400, "field label not supported")
	s.accept("application/yaml", "GET", leads+"?watch=1&resourceVersion=x", "", "").is(500)
	s.accept("application/yaml", "GET", leads+"?watch=1", "", "").is(406, "stream=watch")
}

// The status of some kinds, and some other subresources, have no Table.
func TestSubresourcesWithoutTable(t *testing.T) {
	s := newServerOf(t, builtin.Definitions()...)
	without := map[string]bool{}
	for _, path := range []string{
		"api/v1/namespaces/default/pods/x/ephemeralcontainers", "api/v1/namespaces/default/pods/x/resize",
		"apis/apiregistration.k8s.io/v1/apiservices/x/status", "apis/certificates.k8s.io/v1/certificatesigningrequests/x/approval",
		"apis/resource.k8s.io/v1/devicetaintrules/x/status", "apis/resource.k8s.io/v1/namespaces/default/resourceclaims/x/status",
	} {
		without["/"+path] = true
	}
	for d := range s.catalog.Set().All() {
		v := d.Version("v1")
		if v == nil || !v.Served {
			continue
		}
		path := "/apis/" + d.Group
		if d.Group == "" {
			path = "/api"
		}
		path += "/v1"
		if d.Namespaced {
			path += "/namespaces/default"
		}
		for i := range v.Subresources {
			sub := &v.Subresources[i]
			path := path + "/" + d.Plural + "/x/" + sub.Name
			if sub.Connecter != nil || sub.Verbs[0] != "get" {
				continue
			}
			want := 404
			if without[path] {
				want = 406
			}
			if a := s.accept("application/json"+asTable, "GET", path, "", ""); a.code != want {
				t.Errorf("%s: %d, want %d: %s", path, a.code, want, a.body)
			}
		}
	}
}

// With a limit and a selector, the last page of a list may be empty. A list of one name has one
// page.
func TestLimitOfSelected(t *testing.T) {
	s := newServer(t)
	for _, name := range []string{"a", "b", "c"} {
		s.post(leads, fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":%q,"labels":{"l":%q}}}`, name, name)).is(201)
	}
	for _, tt := range []struct {
		path, query string
		goesOn      bool
	}{
		{leads, "limit=1&labelSelector=l=a", true},
		{leads, "limit=1&labelSelector=l=c", false},
		{leads, "limit=2&labelSelector=l=a", false},
		{leads, "limit=1&fieldSelector=metadata.name=a", false},
		{leads, "limit=2&fieldSelector=metadata.name!=c", true},
		{all, "limit=1&fieldSelector=metadata.name=a", true}, // may be in another namespace
		{all, "limit=1&fieldSelector=metadata.name=a,metadata.namespace=default", false},
		{all, "limit=3&fieldSelector=metadata.namespace=default", false},
	} {
		q, _ := url.ParseQuery(tt.query)
		meta := listMeta(s.get(tt.path + "?" + q.Encode()).is(200))
		if goesOn := meta["continue"] != ""; goesOn != tt.goesOn || meta["remainingItemCount"] != nil {
			t.Errorf("%s: %v, want a continue: %t", tt.query, meta, tt.goesOn)
		}
	}
	s.post(leads, object1("Lead", "ab", "")).is(201)
	if meta := listMeta(s.get(leads + "?limit=1&fieldSelector=metadata.name%3Da").is(200)); meta["continue"] != nil && meta["continue"] != "" {
		t.Errorf("beside a name that begins with it: %v", meta)
	}
	if names := s.get(leads + "?continue=" + continueToken(s.make("d"), "/b\x00")).is(200).names(); names != "c d" {
		t.Errorf("a token of Kubernetes goes on with %s", names)
	}
}

// A future revision is rejected at once, without a retry hint, for a kind that Kubernetes does
// not cache, and for a single name at exactly that revision.
func TestFutureOfUncached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		uncached := hub()
		uncached.Uncached = true
		s := newServerOf(t, lead(), uncached)
		for path, waits := range map[string]bool{
			leads + "?": true,
			leads + "?fieldSelector=metadata.name%3Da&":         true,
			leads + "?fieldSelector=metadata.name%3Da&limit=2&": false,
			leads + "/a?": true,
			hubs + "?":    false,
			hubs + "/a?":  false,
		} {
			began := time.Now()
			a := s.get(path+"resourceVersion=999999").is(504, "Too large resource version: 999999")
			if took := time.Since(began) > 0; took != waits || (a.header.Get("Retry-After") != "") != waits {
				t.Errorf("%s: took %v, Retry-After %q", path, time.Since(began), a.header.Get("Retry-After"))
			}
		}
		s.get(hubs+"/a?resourceVersion=x").message(400, `invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax`)
		s.get(hubs + "/a").is(404)
	})
}
