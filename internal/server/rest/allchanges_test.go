package rest_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A reader has the rights to list, by resource, or by resource and namespace.
type reader struct {
	now, then map[string]bool
	asked     int
	without   int64 // a revision at which there was no right
	fails     error
}

func (r *reader) Has(_ context.Context, asked *request.Info) (bool, error) {
	r.asked++
	return r.now[asked.Resource] || r.now[asked.Resource+" "+asked.Namespace], r.fails
}

func (r *reader) Had(_ context.Context, asked *request.Info, revision int64) error {
	if !r.then[asked.Resource] || revision == r.without {
		return status.Forbidden(lead().GroupResource(), "", errors.New("not then"))
	}
	return nil
}

// A library is a server with a history of several kinds, for one reader.
type library struct {
	*server
	store  *remembering
	reader *reader
}

func newLibrary(t *testing.T, definitions ...*resource.Definition) *library {
	t.Helper()
	f := &library{store: &remembering{Store: memkv.New(memkv.Options{})}, reader: &reader{now: map[string]bool{"leads": true, "hubs": true}}}
	f.server = newServerServing(t, f.store, registry.Options{}, rest.Options{
		Rights: func(context.Context) rest.PastRights { return f.reader },
	}, append(definitions, lead(), hub())...)
	return f
}

// changes requests the changes of all kinds.
func (f *library) changes(query string) answer {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.handler.(*rest.Handler).AllChanges(w, httptest.NewRequestWithContext(f.t.Context(), "GET", "/history/changes?"+query, nil))
	return answer{f.t, w.Code, w.Header(), w.Body.String()}
}

// are checks the revisions of the changes, and of the next older one.
func (a answer) are(earlier int64, want ...int64) answer {
	a.t.Helper()
	var list struct {
		Metadata struct{ Earlier string }
		Items    []struct {
			Revision int64 `json:",string"`
		}
	}
	if err := json.Unmarshal([]byte(a.is(200).body), &list); err != nil {
		a.t.Fatal(err, a.body)
	}
	var got []int64
	for _, i := range list.Items {
		got = append(got, i.Revision)
	}
	if !slices.Equal(got, want) || cmp.Or(list.Metadata.Earlier, "0") != fmt.Sprint(earlier) {
		a.t.Errorf("changes %v and earlier %q, want %v and %d", got, list.Metadata.Earlier, want, earlier)
	}
	return a
}

// The list has changes of several kinds with the place of each object, and is selected by revision, time, number and
// namespace.
func TestAllChanges(t *testing.T) {
	f := newLibrary(t)
	one := f.post(leads, leadOf("x", "one")).is(201).written()
	two := f.post(hubs, object1("Hub", "h")).is(201).written()
	three := f.post(strings.Replace(leads, "default", "other", 1), leadOf("y", "other")).is(201).written()
	f.delete(leads+"/x", "").is(200)
	four := three + 1

	f.changes("").are(0, one, two, three, four).is(200, fmt.Sprintf(`{"kind":"ChangeList","apiVersion":"history.anykind.dev/v1","metadata":{"resourceVersion":"%d"},"items":[{"revision":"%d",`, four, one),
		`"type":"DELETED"`, `"group":"test.example.com","version":"v1","resource":"leads","kind":"Lead","namespace":"default","name":"x","before":{"apiVersion":"test.example.com/v1"`,
		`"group":"test.example.com","version":"v1","resource":"hubs","kind":"Hub","name":"h","object":{`)
	f.changes("limit=2").are(two, three, four)
	f.changes(fmt.Sprintf("limit=2&until=%d", two)).are(0, one, two).is(200, fmt.Sprintf(`"resourceVersion":"%d"`, two))
	f.changes(fmt.Sprintf("limit=4&until=%d", four)).are(0, one, two, three, four)
	f.changes(fmt.Sprintf("since=%d", two)).are(0, three, four)
	f.changes(fmt.Sprintf("since=%d&limit=1", two)).are(three, four)
	f.changes(fmt.Sprintf("since=%d", four)).are(0).is(200, fmt.Sprintf(`"resourceVersion":"%d"},"items":[]}`, four))
	f.changes(fmt.Sprintf("since=%d&until=%d", three, two)).are(0)
	f.changes("until="+timeOf(two).Format("2006-01-02T15:04:05Z")).are(0, one, two)
	f.changes("until=2026-11-20T09:00:"+fmt.Sprintf("%02d", two)+"+01:00").are(0, one, two)
	f.changes("until=2100-01-01T00:00:00Z").are(0, one, two, three, four)
	f.changes("namespace=default").are(0, one, four)
	f.changes("namespace=default&limit=1").are(one, four)
	f.changes("namespace=none").are(0)

	for query, message := range map[string]string{
		"limit=0":               `limit: Invalid value: \"0\": must be from 1 to 1000`,
		"limit=1001":            `limit: Invalid value`,
		"limit=-1":              `limit: Invalid value`,
		"limit=x":               `limit: Invalid value`,
		"since=x":               `since: Invalid value`,
		"since=-1":              `since: Invalid value`,
		"until=yesterday":       `until: Invalid value: \"yesterday\": want a revision, or a time of RFC 3339`,
		"until=0":               `until: Invalid value`,
		"until=0001-01-01":      `until: Invalid value`,
		"until=99":              fmt.Sprintf("until: Invalid value: 99: the newest revision is %d", four),
		"namespace=..":          `namespace: Invalid value`,
		"namespace=a/b":         `namespace: Invalid value`,
		"all=some":              `all: Invalid value`,
		"labelSelector=a":       "mutually exclusive",
		"until=" + "9999999999": "the newest revision is",
	} {
		f.changes(query).is(400, message)
	}
	f.changes("until=2000-01-01T00:00:00Z").is(410, "the oldest kept state is of")
	f.store.forgotten = two
	f.changes("").are(0, one, three, four)
	f.store.oldest = two
	f.changes(fmt.Sprintf("since=%d", one)).is(410, "are no longer kept")
	f.store.damaged = true
	f.changes("").is(500, "storage is damaged at run 7: checksum")
}

// A user sees the changes of the kinds and namespaces that it may list, and of older ones those that it could list then.
func TestRightsToAllChanges(t *testing.T) {
	f := newLibrary(t)
	one := f.post(leads, leadOf("x", "one")).is(201).written()
	two := f.post(hubs, object1("Hub", "h")).is(201).written()
	three := f.post(strings.Replace(leads, "default", "other", 1), leadOf("y", "other")).is(201).written()
	four := f.merge(leads+"/x", `{"spec":{"a":"two"}}`).is(200).written()
	is := func(query string, earlier int64, want ...int64) {
		t.Helper()
		f.changes(query).are(earlier, want...)
	}
	f.reader.now = map[string]bool{"leads default": true}
	is("", 0, one, four)
	is("limit=1", one, four)
	is("namespace=other", 0)
	f.reader.now = map[string]bool{"hubs": true}
	is("", 0, two)
	f.reader.now = nil
	is("", 0)
	f.reader.now = map[string]bool{"leads": true, "hubs": true}
	f.reader.asked = 0
	f.store.recent.Store(three)
	f.reader.then = map[string]bool{"hubs": true}
	is("", 0, two, three, four)
	if f.reader.asked != 2 {
		t.Errorf("%d questions", f.reader.asked)
	}
	f.reader.then["leads"] = true
	f.reader.without = one
	is("", 0, two, three, four)
	f.reader.without = 0
	is("", 0, one, two, three, four)
	f.reader.fails = errors.New("no answer")
	f.changes("").is(500, "no answer")
}

// Leases and Events are left out unless they are wanted. So are kinds that are gone, are not served, or cannot be listed.
func TestKindsOfAllChanges(t *testing.T) {
	quiet := func(group, plural string, verbs []string, served bool) *resource.Definition {
		return resource.New(resource.Definition{
			Group: group, Plural: plural, Singular: plural, Kind: "Other", ListKind: "OtherList", Namespaced: true, Verbs: verbs,
			StoragePrefix: "/registry/" + plural + "/", Versions: []*resource.Version{{Name: "v1", Served: served, Storage: true, Schema: schemaOf("Other")}},
		})
	}
	f := newLibrary(t, quiet("coordination.k8s.io", "leases", nil, true), quiet("", "events", nil, true), quiet("", "deaf", []string{"create"}, true), quiet("old.example.com", "olds", nil, false))
	for _, plural := range []string{"leases", "events", "deaf", "olds"} {
		f.reader.now[plural] = true
		if _, err := f.store.Commit(t.Context(), kv.Write{Key: "/registry/" + plural + "/default/x", Value: []byte(`{"apiVersion":"v1","kind":"Other","metadata":{"name":"x"}}`)}); err != nil {
			t.Fatal(err)
		}
	}
	first := f.post(leads, leadOf("x", "one")).is(201).written()
	f.changes("").are(0, first)
	f.changes("all=true").are(0, first-4, first-3, first).is(200, `"resource":"events"`, `"resource":"leases"`)
	f.changes("all=false").are(0, first)
	f.catalog.Swap(resource.NewSet([]*resource.Definition{hub()}))
	f.changes("").are(0)
}

// Without a history, the error names the flag.
func TestNoAllChanges(t *testing.T) {
	s := newServer(t)
	for _, query := range []string{"", "until=2026-11-20T09:00:00Z"} {
		w := httptest.NewRecorder()
		s.handler.(*rest.Handler).AllChanges(w, httptest.NewRequestWithContext(t.Context(), "GET", "/history/changes?"+query, nil))
		answer{t, w.Code, w.Header(), w.Body.String()}.is(400, "this server keeps no history: start it with --history=30d")
	}
	w := httptest.NewRecorder()
	s.handler.(*rest.Handler).AllChanges(w, httptest.NewRequestWithContext(t.Context(), "POST", "/history/changes", nil))
	answer{t, w.Code, w.Header(), w.Body.String()}.is(405)
}
