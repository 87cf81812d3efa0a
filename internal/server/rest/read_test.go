package rest_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/transform"
)

func (s *server) make(names ...string) (revision string) {
	for _, n := range names {
		revision = object.ResourceVersion(s.post(leads, named(n)).is(201).tree())
	}
	return revision
}

// listMeta returns the metadata of a list.
func listMeta(a answer) object.Tree {
	m, _ := a.is(200).tree()["metadata"].(object.Tree)
	return m
}

// The rows of the table "List and watch" of the reliability promises, for lists.
func TestListRevisions(t *testing.T) { synctest.Test(t, testListRevisions) }

func testListRevisions(t *testing.T) {
	s := newServer(t)
	first := s.make("a", "b")
	second := s.make("c")
	future := "999999"
	for _, tt := range []struct {
		query string
		code  int
		names string
	}{
		{"", 200, "a b c"},
		{"?resourceVersion=0", 200, "a b c"},
		{"?resourceVersion=" + first, 200, "a b c"},
		{"?resourceVersion=" + first + "&resourceVersionMatch=NotOlderThan", 200, "a b c"},
		{"?resourceVersion=" + first + "&resourceVersionMatch=Exact", 200, "a b"},
		{"?resourceVersion=" + first + "&limit=10", 200, "a b"},
		{"?resourceVersion=" + second + "&resourceVersionMatch=Exact", 200, "a b c"},
		{"?resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"},
		{"?resourceVersion=0&resourceVersionMatch=Exact", 422, `resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"`},
		{"?resourceVersion=1&resourceVersionMatch=Exact&continue=x", 422, "resourceVersionMatch is forbidden when continue is provided"},
		{"?resourceVersion=1&resourceVersionMatch=Newest", 422, "Unsupported value"},
		{"?sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"},
		{"?resourceVersion=x", 400, `invalid resource version: resourceVersion: Invalid value: \"x\"`},
		{"?limit=x", 400, `strconv.ParseInt: parsing \"x\": invalid syntax`},
		{"?resourceVersion=" + future, 504, "Too large resource version: " + future},
	} {
		a := s.get(leads + tt.query)
		if tt.code != 200 {
			a.is(tt.code, tt.names)
			continue
		}
		if names := a.is(200).names(); names != tt.names {
			t.Errorf("%s: %s, want %s", tt.query, names, tt.names)
		}
	}
	for query, names := range map[string]string{"": "a", "?resourceVersion=0": "a", "?resourceVersion=" + first: "a", "?resourceVersion=" + second: "a"} {
		s.get(leads + "/" + names + query).is(200)
	}
	s.get(leads+"/a?resourceVersion=x").is(500, `resourceVersion: Invalid value: \"x\"`)
	if a := s.get(leads + "/a?resourceVersion=" + future); a.code != 504 || a.header.Get("Retry-After") != "1" {
		t.Errorf("%d, Retry-After %q", a.code, a.header.Get("Retry-After"))
	}
}

// "list + continue: the token's snapshot": changes after the first part do not show in the
// others.
func TestListParts(t *testing.T) {
	s := newServer(t)
	s.make("a", "b", "c", "d", "e")
	part := s.get(leads + "?limit=2")
	meta := listMeta(part)
	if part.names() != "a b" || fmt.Sprint(meta["remainingItemCount"]) != "3" {
		t.Fatalf("first part %s", part.body)
	}
	s.delete(leads+"/d", "").is(200)
	s.make("bb")
	token := fmt.Sprint(meta["continue"])
	part = s.get(leads + "?limit=2&continue=" + token)
	if part.names() != "c d" || listMeta(part)["resourceVersion"] != meta["resourceVersion"] {
		t.Errorf("second part %s", part.body)
	}
	part = s.get(leads + "?limit=2&continue=" + fmt.Sprint(listMeta(part)["continue"]))
	if part.names() != "e" || listMeta(part)["continue"] != "" || listMeta(part)["remainingItemCount"] != nil {
		t.Errorf("last part %s", part.body)
	}
	s.get(leads+"?limit=2&resourceVersion=1&continue="+token).is(400, "specifying resource version is not allowed when using continue")
	s.get(leads+"?continue=xx").is(400, "invalid continue token")
}

// "An expired continue token: 410 plus a new token that continues from the
// latest."
func TestExpiredContinue(t *testing.T) {
	s := newServer(t)
	s.make("a", "b", "c")
	token := fmt.Sprint(listMeta(s.get(leads + "?limit=1"))["continue"])
	newest := s.make("bb")
	_ = token
	revision, _ := strconv.ParseInt(newest, 10, 64)
	old := continueToken("1", "a\x00")
	if err := s.backend.Compact(t.Context(), revision); err != nil {
		t.Fatal(err)
	}
	a := s.get(leads+"?limit=1&continue="+old).is(410, "The provided continue parameter is too old")
	fresh := fmt.Sprint(a.tree()["metadata"].(object.Tree)["continue"])
	if names := s.get(leads + "?continue=" + fresh).is(200).names(); names != "b bb c" {
		t.Errorf("went on with %s", names)
	}
}

func TestSelectors(t *testing.T) {
	s := newServer(t)
	for name, label := range map[string]string{"a": "x", "b": "y", "c": "x"} {
		s.post(leads, fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":%q,"labels":{"l":%q}}}`, name, label)).is(201)
	}
	s.post(strings.Replace(leads, "default", "other", 1), named("a")).is(201)
	for _, tt := range []struct{ path, query, want string }{
		{leads, "labelSelector=l=x", "a c"},
		{leads, "labelSelector=l!=x", "b"},
		{leads, "labelSelector=l in (y,z)", "b"},
		{leads, "labelSelector=!l", ""},
		{leads, "fieldSelector=metadata.name=b", "b"},
		{leads, "fieldSelector=metadata.name!=b", "a c"},
		{all, "fieldSelector=metadata.name=a", "a a"},
		{all, "fieldSelector=metadata.namespace=other", "a"},
		{leads, "labelSelector=l=x&fieldSelector=metadata.name=b", ""},
	} {
		q, _ := url.ParseQuery(tt.query)
		if names := s.get(tt.path + "?" + q.Encode()).is(200).names(); names != tt.want {
			t.Errorf("%s: %s, want %s", tt.query, names, tt.want)
		}
	}
	s.get(leads+"?labelSelector=a%3D%3D%3Db").message(400, "unable to parse requirement: found '=', expected: identifier")
	s.get(leads+"?fieldSelector=spec.a%3Db").message(400, "field label not supported: spec.a")
}

// "One undecodable stored object fails its own reads, no one else's, and can be deleted." Its own
// are also the lists and watches that select it, as in Kubernetes: a client that got them without
// the object would consider it deleted.
func TestUnreadableObject(t *testing.T) {
	s := newServer(t)
	s.make("good")
	s.post(hubs, object1("Hub", "h")).is(201)
	s.store("/registry/test.example.com/leads/default/bad", "k8s\x00 not JSON")
	s.get(leads+"/bad").is(500, "StorageError: corrupt object, Code: 7, Key: /test.example.com/leads/default/bad, ResourceVersion: 0, AdditionalErrorMsg: object not decodable revision=")
	s.get(leads).is(500, `"StorageReadError"`, "failed to read one or more leads.test.example.com from the storage: ", `"field":"/registry/test.example.com/leads/default/bad"`)
	s.get(leads+"?labelSelector=l%3Dx&limit=1").is(500, "/registry/test.example.com/leads/default/bad") // it may match the selector
	expect(t, s.watch(all+"?watch=1&labelSelector=l%3Dx"), "ERROR InternalError", "")
	s.get(leads + "/good").is(200)
	s.get(hubs).is(200)
	const others = "/apis/test.example.com/v1/namespaces/other/leads"
	s.get(others).is(200)
	next := s.watch(others + "?watch=1")
	s.post(others, named("elsewhere")).is(201)
	expect(t, next, "ADDED elsewhere")
	const unsafe = `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	s.delete(leads+"/good", unsafe).is(409, "unsafe deletion is not allowed because the object is decodable from storage")
	s.delete(leads, unsafe).is(422, "is not allowed with DELETECOLLECTION")
	s.delete(leads+"/bad", "").is(500, "corrupt object")
	s.delete(leads+"/bad", `{"preconditions":{"uid":"other"}}`).is(500, "corrupt object")
	s.delete(leads+"/bad", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true,"dryRun":["All"]}`).is(200)
	s.get(leads+"/bad").is(500, "corrupt object")
	s.delete(leads+"/bad", unsafe).is(200, `"status":"Success"`, `"details":{"name":"bad","kind":"Lead"},"code":200`)
	if names := s.get(all).is(200).names(); names != "good elsewhere" {
		t.Errorf("left %s", names)
	}
	expect(t, s.watch(all+"?watch=1"), "ADDED good", "ADDED elsewhere")
}

// A list names the corrupt objects, up to a hundred.
func TestCorruptObjectsOfAList(t *testing.T) {
	s := newServer(t)
	s.make("good")
	for i := range 3 {
		s.store(fmt.Sprintf("/registry/test.example.com/leads/default/bad-%d", i), "damaged")
	}
	s.get(leads).is(500, `"name":"list","group":"test.example.com","kind":"leads"`, "default/bad-0", "default/bad-1", "default/bad-2", "(and 2 more)")
	for i := range 100 {
		s.store(fmt.Sprintf("/registry/test.example.com/leads/default/more-%03d", i), "damaged")
	}
	s.get(leads).is(500, "(and 99 more)", "too many errors, the list is truncated")
}

// locked decodes nothing until it is open.
type locked struct{ open atomic.Bool }

func (l *locked) Encode(_ context.Context, _ string, plain []byte) ([]byte, error) { return plain, nil }

func (l *locked) Decode(_ context.Context, _ string, stored []byte) []byte {
	if !l.open.Load() {
		return []byte("unreadable")
	}
	return stored
}

// refusing is the guard of a server that is read-only.
type refusing struct{}

func (refusing) Mutate(_ context.Context, a *registry.Admission) error {
	return a.Forbidden(errors.New("it is read-only"))
}

// An object that is readable again is not deleted, even if the cache does not know it yet. The guard of the server is asked.
func TestUnsafeDeletionLooksAgain(t *testing.T) {
	const key, unsafe = "/registry/test.example.com/leads/default/a", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	for _, guard := range []registry.Mutator{nil, refusing{}} {
		store, l := memkv.New(memkv.Options{}), &locked{}
		s := newServerServing(t, transform.New(store, l, transform.Options{}), registry.Options{Plugins: registry.Plugins{Guard: guard}}, rest.Options{}, lead())
		if _, err := store.Commit(t.Context(), kv.Write{Key: key, Value: []byte(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":"a","namespace":"default","uid":"u"}}`)}); err != nil {
			t.Fatal(err)
		}
		s.get(leads+"/a").is(500, "corrupt object")
		l.open.Store(true)
		s.delete(leads+"/a", unsafe).is(409, "the object is decodable from storage")
		l.open.Store(false)
		if guard != nil {
			s.delete(leads+"/a", unsafe).is(403, "it is read-only")
			continue
		}
		s.delete(leads+"/a", unsafe).is(200)
		if _, err := store.Get(t.Context(), key, kv.Latest); !errors.Is(err, kv.ErrNotFound) {
			t.Errorf("the object is still there: %v", err)
		}
	}
}

// Without the feature gate, the option has no effect, and the first corrupt object ends a list.
func TestCorruptObjectWithoutItsGate(t *testing.T) {
	off := gate.With(map[gate.Name]bool{gate.AllowUnsafeMalformedObjectDeletion: false})
	s := newServerServing(t, memkv.New(memkv.Options{}), registry.Options{Gates: off}, rest.Options{Gates: off}, lead())
	s.store("/registry/test.example.com/leads/default/bad", "damaged")
	for _, a := range []answer{s.get(leads + "/bad"), s.get(leads), s.delete(leads+"/bad", `{"ignoreStoreReadErrorWithClusterBreakingPotential":true}`)} {
		a.message(500, "Internal error occurred: the stored object /registry/test.example.com/leads/default/bad cannot be decoded: not a stored object: found 'd', want '{' at byte 0")
	}
}

func TestTable(t *testing.T) {
	s := newServer(t)
	s.make("a")
	r := s.table(leads)
	r.is(200, `"kind":"Table"`, `"name":"Name"`, `"name":"Age"`, `"cells":["a","`, `"kind":"PartialObjectMetadata"`)
	s.table(leads+"/a").is(200, `"kind":"Table"`, `"cells":["a","`)
}

// The Table of a list marks the default object; that of a single object does not.
func TestTableMarksTheDefault(t *testing.T) {
	d := lead()
	d.StorageVersion().DefaultOf = func(objs []map[string]any) string {
		return object.Name(objs[len(objs)-1])
	}
	s := newServerOf(t, d)
	s.make("a", "b")
	s.table(leads).is(200, `"cells":["a","`, `"cells":["b (default)","`)
	s.table(leads+"?limit=1").is(200, `"cells":["a (default)","`)
	s.table(leads+"/b").is(200, `"cells":["b","`)
}

func TestPretty(t *testing.T) {
	s := newServer(t)
	s.make("a")
	s.get(leads+"/a?pretty=true").is(200, "\n  \"kind\": \"Lead\"")
}
