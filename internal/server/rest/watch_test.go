package rest_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// store stores bytes under the key of an object.
func (s *server) store(key, value string) {
	s.t.Helper()
	if _, err := s.backend.Commit(s.t.Context(), kv.Write{Key: key, Value: []byte(value)}); err != nil {
		s.t.Fatal(err)
	}
}

func (s *server) table(path string) answer {
	r := httptest.NewRequestWithContext(s.t.Context(), "GET", path, nil)
	r.Header.Set("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return answer{s.t, w.Code, w.Header(), w.Body.String()}
}

// continueToken forges a token, as a malicious client might.
func continueToken(revision any, start string) string {
	rv, _ := strconv.Atoi(revision.(string))
	data, _ := json.Marshal(map[string]any{"v": "meta.k8s.io/v1", "rv": rv, "start": start})
	return base64.RawURLEncoding.EncodeToString(data)
}

// expect reads events of a watch and compares them.
func expect(t *testing.T, next func() string, want ...string) {
	t.Helper()
	for _, w := range want {
		if got := next(); got != w {
			t.Fatalf("event %q, want %q", got, w)
		}
	}
}

func labelled(name, label string) string {
	return `{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"` + name + `","labels":{"l":"` + label + `"}}}`
}

// "watch, no resourceVersion: synthetic ADDED, then on."
func TestWatchFromNow(t *testing.T) {
	s := newServer(t)
	s.make("a", "b")
	next := s.watch(leads + "?watch=1")
	expect(t, next, "ADDED a", "ADDED b")
	s.make("c")
	s.merge(leads+"/c", `{"spec":{"a":"x"}}`).is(200)
	s.delete(leads+"/c", "").is(200)
	expect(t, next, "ADDED c", "MODIFIED c x", "DELETED c x")
}

// "watch, N: strictly after N."
func TestWatchFromRevision(t *testing.T) {
	s := newServer(t)
	first := s.make("a")
	s.make("b")
	next := s.watch(leads + "?watch=true&resourceVersion=" + first)
	expect(t, next, "ADDED b")
	s.make("c")
	expect(t, next, "ADDED c")
}

// "An object that leaves the selector arrives as DELETED."
func TestWatchSelection(t *testing.T) {
	s := newServer(t)
	s.post(leads, labelled("a", "x")).is(201)
	s.post(leads, labelled("b", "y")).is(201)
	next := s.watch(leads + "?watch=1&labelSelector=l%3Dx")
	expect(t, next, "ADDED a")
	s.merge(leads+"/b", `{"metadata":{"labels":{"l":"x"}}}`).is(200)
	s.merge(leads+"/a", `{"metadata":{"labels":{"l":"y"}}}`).is(200)
	s.delete(leads+"/a", "").is(200)
	s.delete(leads+"/b", "").is(200)
	expect(t, next, "ADDED b", "DELETED a", "DELETED b")
}

// "DELETED carries the revision of the deletion."
func TestDeletedRevision(t *testing.T) { synctest.Test(t, testDeletedRevision) }

func testDeletedRevision(t *testing.T) {
	s := newServer(t)
	rv := s.make("a")
	s.delete(leads+"/a", "").is(200)
	a := s.get(leads + "?watch=1&timeoutSeconds=1&resourceVersion=" + rv).is(200)
	var e struct{ Object object.Tree }
	if err := json.Unmarshal([]byte(a.body), &e); err != nil {
		t.Fatal(err, a.body)
	}
	deleted, _ := strconv.Atoi(object.ResourceVersion(e.Object))
	created, _ := strconv.Atoi(rv)
	if deleted <= created {
		t.Errorf("DELETED at %d, created at %d", deleted, created)
	}
}

// "sendInitialEvents needs NotOlderThan; ends with a BOOKMARK annotated
// k8s.io/initial-events-end."
func TestStreamingList(t *testing.T) {
	s := newServer(t)
	rv := s.make("a", "b")
	query := "?watch=1&sendInitialEvents=true&allowWatchBookmarks=true"
	s.get(leads+query).is(422, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	next := s.watch(leads + query + "&resourceVersionMatch=NotOlderThan&resourceVersion=" + rv)
	expect(t, next, "ADDED a", "ADDED b", "BOOKMARK true")
	s.make("c")
	expect(t, next, "ADDED c")
	s.get(leads+"?watch=1&resourceVersionMatch=NotOlderThan").is(422, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
}

// "Too old: watch: an ERROR event in the stream."
func TestWatchTooOld(t *testing.T) {
	s := newServer(t)
	revision, _ := strconv.ParseInt(s.make("a", "b"), 10, 64)
	if err := s.backend.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	next := s.watch(leads + "?watch=1&resourceVersion=1")
	expect(t, next, "ERROR Expired", "")
}

// A watch of one object, by the deprecated paths and by its name. The path of the object itself
// always returns the object, even with ?watch.
func TestWatchOne(t *testing.T) { synctest.Test(t, testWatchOne) }

func testWatchOne(t *testing.T) {
	s := newServer(t)
	s.make("a", "b")
	old := strings.Replace(leads, "/v1/", "/v1/watch/", 1)
	for _, path := range []string{
		old + "/a?x=1",
		old + "/a?fieldSelector=metadata.name%3Da",
		old + "?fieldSelector=metadata.name%3Da",
		strings.Replace(all, "/v1/", "/v1/watch/", 1) + "?fieldSelector=metadata.name%3Da",
		leads + "?watch=1&fieldSelector=metadata.name%3Da",
	} {
		a := s.get(path+"&timeoutSeconds=1").is(200, `{"type":"ADDED"`, `"name":"a"`)
		if strings.Count(a.body, "\n") != 1 {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	s.get(old+"/a?fieldSelector=metadata.name%3Db").message(400, "fieldSelector metadata.name doesn't match requested name")
	s.get(old+"/a?fieldSelector=metadata.name%3Db&labelSelector=a+b").is(400, "found 'b', expected:")
	s.get(old+"/a?fieldSelector=spec.none%3Db").message(400, "field label not supported: spec.none")
	if got, want := s.get(leads+"/a?watch=1").is(200).body, s.get(leads+"/a").body; got != want {
		t.Errorf("the object itself: %s", got)
	}
	s.get(leads + "/none?watch=1").is(404)
	// Those paths only watch, whatever the method.
	for _, method := range []string{"DELETE", "PUT", "POST", "PATCH"} {
		s.do(method, old+"/a?timeoutSeconds=1", "application/json", "").is(200, `{"type":"ADDED"`)
	}
	s.get(leads + "/a").is(200)
}

// A watch ends when the Definition of its resource changes, as in Kubernetes, so that its client
// reconnects and gets objects by the new one. If the resource is gone, the events of its objects
// are sent first.
func TestWatchOfRetired(t *testing.T) {
	s := newServer(t)
	first := s.make("a")
	next := s.watch(leads + "?watch=1&resourceVersion=" + first)
	s.merge(leads+"/a", `{"spec":{"a":"x"}}`).is(200)
	expect(t, next, "MODIFIED a x")
	s.catalog.Swap(resource.NewSet([]*resource.Definition{lead(), hub()}))
	expect(t, next, "")

	next = s.watch(leads + "?watch=1&resourceVersion=" + first)
	expect(t, next, "MODIFIED a x")
	s.delete(leads+"/a", "").is(200)
	s.get(leads + "/a").is(404) // a read sees the deletion
	s.catalog.Swap(resource.NewSet([]*resource.Definition{hub()}))
	expect(t, next, "DELETED a x", "")
	s.get(leads).is(404)
}
