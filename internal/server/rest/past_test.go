package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/server/rest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// began is the time of revision 0 of a remembering store. Each revision is a second later.
var began = time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)

// remembering is a store in memory as a kv.Historian.
type remembering struct {
	*memkv.Store
	recent  atomic.Int64
	oldest  int64
	damaged bool // at the end of the changes

	forgotten int64 // a revision
}

func timeOf(revision int64) time.Time { return began.Add(time.Duration(revision) * time.Second) }

func (r *remembering) At(ctx context.Context, t time.Time) (int64, error) {
	newest, err := r.Revision(ctx)
	revision := min(int64(t.Sub(began)/time.Second), newest)
	if revision < 1 {
		return 0, &kv.TooEarlyError{Asked: t, Oldest: timeOf(1)}
	}
	return revision, err
}

func (r *remembering) Recent() int64 { return r.recent.Load() }

func (r *remembering) Changes(ctx context.Context, keys string, after int64) iter.Seq2[kv.Past, error] {
	return func(yield func(kv.Past, error) bool) {
		if after != 0 && after < r.oldest {
			yield(kv.Past{}, &kv.CompactedError{Asked: after, Oldest: r.oldest})
			return
		}
		newest, _ := r.Revision(ctx)
		for batch, err := range r.Watch(ctx, "", max(after, 1)) {
			if err != nil {
				yield(kv.Past{}, err)
				return
			}
			for _, e := range batch.Events {
				if e.Key == keys || strings.HasSuffix(keys, "/") && strings.HasPrefix(e.Key, keys) {
					if !yield(kv.Past{Event: e, Time: timeOf(e.Revision)}, nil) {
						return
					}
				}
			}
			if batch.Revision >= newest {
				break
			}
		}
		if r.damaged {
			yield(kv.Past{}, &kv.CorruptError{Where: "run 7", Reason: "checksum"})
		}
	}
}

func (r *remembering) Log(ctx context.Context, after, until int64) iter.Seq2[kv.Logged, error] {
	return func(yield func(kv.Logged, error) bool) {
		var all []kv.Logged
		for p, err := range r.Changes(ctx, "/registry/", after) {
			if err != nil {
				yield(kv.Logged{}, err)
				return
			}
			if until == 0 || p.Revision <= until {
				all = append(all, kv.Logged{Key: p.Key, Revision: p.Revision})
			}
		}
		for i := len(all) - 1; i >= 0 && yield(all[i], nil); i-- {
		}
	}
}

func (r *remembering) Change(ctx context.Context, key string, revision int64) (kv.Past, error) {
	if revision == r.forgotten {
		return kv.Past{}, kv.ErrNotFound
	}
	for p, err := range r.Changes(ctx, key, revision-1) {
		return p, err
	}
	return kv.Past{}, kv.ErrNotFound
}

func (r *remembering) Forget(context.Context, string) error { return nil }

// newPast returns a server whose store has a history. then is Options.Then.
func newPast(t *testing.T, then func(context.Context, int64) error) (*server, *remembering) {
	t.Helper()
	store := &remembering{Store: memkv.New(memkv.Options{})}
	o := rest.Options{Then: then, Rights: func(context.Context) rest.PastRights { return rightsThen{then: then} }}
	return newServerServing(t, store, registry.Options{}, o, lead(), hub()), store
}

// rightsThen are the rights by Options.Then.
type rightsThen struct {
	rest.PastRights
	then func(context.Context, int64) error
}

func (r rightsThen) Had(ctx context.Context, _ *request.Info, revision int64) error {
	return r.then(ctx, revision)
}

// lacks checks that the body does not contain a word.
func (a answer) lacks(word string) {
	a.t.Helper()
	if strings.Contains(a.body, word) {
		a.t.Errorf("%s\nhas %s", a.body, word)
	}
}

func leadOf(name, a string) string {
	return fmt.Sprintf(`{"apiVersion":"test.example.com/v1","kind":"Lead","metadata":{"name":%q},"spec":{"a":%q}}`, name, a)
}

// written returns the revision of an answer.
func (a answer) written() int64 {
	a.t.Helper()
	var o struct {
		Metadata struct {
			ResourceVersion int64 `json:",string"`
		}
	}
	if err := json.Unmarshal([]byte(a.body), &o); err != nil || o.Metadata.ResourceVersion == 0 {
		a.t.Fatalf("%d %s: %v", a.code, a.body, err)
	}
	return o.Metadata.ResourceVersion
}

func asOf(revision int64) string { return "?asOf=" + timeOf(revision).Format(time.RFC3339) }

// An object, a list and a watch can begin at an earlier state, by its revision or its time.
func TestReadsOfThePast(t *testing.T) {
	s, _ := newPast(t, nil)
	first := s.post(leads, leadOf("x", "one")).is(201).written()
	second := s.merge(leads+"/x", `{"spec":{"a":"two"}}`).is(200).written()
	s.delete(leads+"/x", "").is(200)
	s.post(leads, leadOf("y", "later")).is(201)

	exact := func(revision int64) string {
		return fmt.Sprintf("?resourceVersion=%d&resourceVersionMatch=Exact", revision)
	}
	one, two := fmt.Sprintf(`"resourceVersion":"%d"`, first), fmt.Sprintf(`"resourceVersion":"%d"`, second)
	s.get(leads + "/x").is(404)
	s.get(leads+"/x"+exact(first)).is(200, one, `"a":"one"`)
	s.get(leads+"/x"+exact(second)).is(200, two, `"a":"two"`)
	s.get(leads+"/x"+exact(second+1)).is(404, `leads.test.example.com \"x\" not found`)
	s.get(leads + "/x" + exact(first-1)).is(404)
	s.get(leads + "/x" + fmt.Sprintf("?resourceVersion=%d", first)).is(404) // not older than, as before
	s.get(leads+"/x/status"+exact(first)).is(200, one)
	s.get(leads + "/x" + exact(0)).is(404)
	s.get(leads + "/y" + exact(0)).is(200)

	s.get(leads+"/x"+asOf(first)).is(200, one)
	s.get(leads+"/x?asOf="+timeOf(second).Add(900*time.Millisecond).Format(time.RFC3339Nano)).is(200, two)
	s.get(leads+"/x?asOf=2026-11-20T09:00:"+fmt.Sprintf("%02d", second)+"+01:00").is(200, two)
	s.get(leads+asOf(second)).is(200, `"continue":"","resourceVersion":"`+fmt.Sprint(second)+`"}`, `"a":"two"`).lacks("later")
	s.get(leads+asOf(second+1)).is(200, `"items":[]`)
	s.get(leads+asOf(second)+"&fieldSelector=metadata.name%3Dy").is(200, `"items":[]`)

	s.get(leads+"/x"+asOf(first)+"&resourceVersion=5").is(400, "mutually exclusive")
	s.get(leads+"?asOf=yesterday").is(400, `asOf: Invalid value: \"yesterday\": want a time of RFC 3339`)
	s.get(leads+"?asOf=2000-01-01T00:00:00Z").is(410, "the oldest kept state is of 2026-11-20T08:00:01Z, not of 2000-01-01T00:00:00Z")
	s.get(leads + "/..?asOf=2026-11-20T09:00:00Z").is(400)

	events := s.get(leads+asOf(first)+"&watch=1&timeoutSeconds=1").is(200, `"type":"MODIFIED"`, `"type":"DELETED"`, "later")
	if strings.Contains(events.body, `"a":"one"`) {
		t.Errorf("a watch sends its first state: %s", events.body)
	}
}

// A Table and metadata are made of an old state as of the present one.
func TestFormsOfThePast(t *testing.T) {
	s, _ := newPast(t, nil)
	first := s.post(leads, leadOf("x", "one")).is(201).written()
	s.merge(leads+"/x", `{"spec":{"a":"two"}}`).is(200)
	for accept, words := range map[string]string{
		"application/json;as=Table;v=v1;g=meta.k8s.io":                 `"rows":[`,
		"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io": `"kind":"PartialObjectMetadata"`,
		"application/yaml": "resourceVersion: \"" + fmt.Sprint(first) + `"`,
	} {
		r := httptest.NewRequestWithContext(t.Context(), "GET", leads+"/x"+asOf(first), nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		answer{t, w.Code, w.Header(), w.Body.String()}.is(200, words).lacks("two")
	}
}

// history=true lists the changes of an object or of a collection.
func TestHistory(t *testing.T) {
	s, store := newPast(t, nil)
	s.get(leads + "/x?history=true").is(404)
	as := func(user, verb, method, path, body string) answer {
		q := &request.Request{Info: request.Info{}, User: &request.User{Name: user}, AuditID: "id-" + verb, Sent: http.Header{"User-Agent": {"tool/v1"}}}
		r := httptest.NewRequestWithContext(request.With(t.Context(), q), method, path, strings.NewReader(body))
		r.Header = q.Sent
		r.Header.Set("Content-Type", "application/merge-patch+json")
		if method == "POST" {
			r.Header.Set("Content-Type", "application/json")
		}
		q.Info = request.Parse(r)
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, r)
		return answer{t, w.Code, w.Header(), w.Body.String()}
	}
	first := as("ann", "create", "POST", leads, leadOf("x", "one")).is(201).written()
	second := as("bob", "patch", "PATCH", leads+"/x/status?fieldManager=hand", `{"status":{"n":1}}`).is(200).written()
	as("cyd", "delete", "DELETE", leads+"/x", "").is(200)
	s.post(leads, leadOf("y", "other")).is(201)

	s.get(leads+"/x?history=true").is(200, fmt.Sprintf(`{"kind":"ChangeList","apiVersion":"history.anykind.dev/v1","metadata":{"resourceVersion":"%d"},"items":[`, second+2),
		fmt.Sprintf(`{"revision":"%d","time":"2026-11-20T08:00:%02d.000Z","type":"ADDED","user":"ann","verb":"create","manager":"tool","request":"id-create","object":{`, first, first),
		fmt.Sprintf(`{"revision":"%d","time":"2026-11-20T08:00:%02d.000Z","type":"MODIFIED","user":"bob","verb":"patch","manager":"hand","subresource":"status","request":"id-patch","before":{`, second, second),
		`"type":"DELETED","user":"cyd","verb":"delete","manager":"tool","request":"id-delete","before":{`)
	var list struct {
		Items []struct {
			Type           string
			Before, Object *struct {
				APIVersion string
				Metadata   struct{ Name, ResourceVersion string }
			}
		}
	}
	read := func(query string, want ...string) {
		t.Helper()
		list.Items = nil
		if err := json.Unmarshal([]byte(s.get(leads+query).is(200).body), &list); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, item := range list.Items {
			what := item.Type
			if item.Before != nil {
				what += " " + item.Before.Metadata.Name + "@" + item.Before.Metadata.ResourceVersion
			}
			if item.Object != nil {
				what += " to " + item.Object.Metadata.Name + "@" + item.Object.Metadata.ResourceVersion
			}
			got = append(got, what)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	added, modified := fmt.Sprintf("ADDED to x@%d", first), fmt.Sprintf("MODIFIED x@%d to x@%d", first, second)
	deleted, other := fmt.Sprintf("DELETED x@%d", second), fmt.Sprintf("ADDED to y@%d", second+2)
	read("/x?history=true", added, modified, deleted)
	read("?history=true", added, modified, deleted, other)
	read("?history=1&limit=2", deleted, other)
	read("?history=1&limit=20", added, modified, deleted, other)
	read(fmt.Sprintf("/x?history=true&since=%d", first), modified, deleted)
	read(fmt.Sprintf("/x?history=true&since=%d&limit=1", first), deleted)
	read(fmt.Sprintf("/y?history=true&since=%d", second+2))
	s.get(leads+"?history=false").is(200, `"kind":"LeadList"`)

	s.get(leads + "/z?history=true").is(404)
	s.get(leads+"/x/status?history=true").is(400, "a subresource has no history of its own")
	s.get(leads+"?history=true&labelSelector=a").is(400, "history and labelSelector are mutually exclusive")
	s.get(leads+"?history=true&limit=-1").is(400, `limit: Invalid value`)
	s.get(leads+"?history=true&since=x").is(400, `since: Invalid value`)
	s.get(leads+"?history=true&watch=true").is(400, "mutually exclusive")
	store.oldest = second
	s.get(leads+fmt.Sprintf("?history=true&since=%d", first)).is(410, "are no longer kept")
	store.damaged = true
	s.get(leads+"/x?history=true").is(500, "storage is damaged at run 7: checksum")
}

// A store without a history keeps its recent states.
func TestNoHistory(t *testing.T) {
	s := newServer(t)
	first := s.post(leads, leadOf("x", "one")).is(201).written()
	s.merge(leads+"/x", `{"spec":{"a":"two"}}`).is(200)
	for _, query := range []string{"?history=true", "?asOf=2026-11-20T09:00:00Z"} {
		s.get(leads+query).is(400, "this server keeps no history: start it with --history=30d")
		s.get(leads+"/x"+query).is(400, "this server keeps no history")
	}
	s.get(leads+fmt.Sprintf("/x?resourceVersion=%d&resourceVersionMatch=Exact", first)).is(200, `"a":"one"`)
	if err := s.backend.Compact(t.Context(), first+1); err != nil {
		t.Fatal(err)
	}
	s.get(leads+fmt.Sprintf("/x?resourceVersion=%d&resourceVersionMatch=Exact", first)).is(410, "too old resource version")
}

// Old states need the rights of their time, however they are read.
func TestRightsOfThen(t *testing.T) {
	var asked []int64
	s, store := newPast(t, func(_ context.Context, revision int64) error {
		asked = append(asked, revision)
		return status.Forbidden(lead().GroupResource(), "x", fmt.Errorf("not then"))
	})
	first := s.post(leads, leadOf("x", "one")).is(201).written()
	second := s.merge(leads+"/x", `{"spec":{"a":"two"}}`).is(200).written()
	exact := fmt.Sprintf("resourceVersion=%d&resourceVersionMatch=Exact", first)
	reads := []string{
		leads + "/x?" + exact, leads + "/x" + asOf(first), leads + "?" + exact, leads + asOf(first),
		leads + fmt.Sprintf("?limit=1&resourceVersion=%d", first),
		leads + asOf(first) + "&watch=1&timeoutSeconds=1", leads + fmt.Sprintf("?watch=1&timeoutSeconds=1&resourceVersion=%d", first),
	}
	for _, path := range reads {
		s.get(path).is(200)
	}
	store.recent.Store(second)
	for i, path := range reads {
		s.get(path).is(403, "not then")
		if len(asked) != i+1 || asked[i] != first {
			t.Errorf("%s: asked for %v", path, asked)
		}
	}
	s.delete(leads+"?"+exact, "").is(403, "not then")
	// The change after it is recent. Without it, there is none that the user may see.
	for _, path := range []string{leads + "?history=true", leads + "/x?history=true&since=1"} {
		s.get(path).is(200, `"type":"MODIFIED"`).lacks(`"type":"ADDED"`)
	}
	store.recent.Store(second + 1)
	s.get(leads+"/x?history=true").is(403, "not then")
	s.get(leads+"?history=true").is(403, "not then")
	store.recent.Store(second)
	for _, path := range []string{leads, leads + "/x", leads + asOf(second), leads + "?history=true&limit=1", leads + "/x?resourceVersion=1"} {
		s.get(path).is(200)
	}
}

// A range of states needs the rights at each of them: changes without them are left out, and a watch ends before.
func TestRightsWithinARange(t *testing.T) {
	denied := map[int64]bool{}
	s, store := newPast(t, func(_ context.Context, revision int64) error {
		if denied[revision] {
			return status.Forbidden(lead().GroupResource(), "x", fmt.Errorf("not then"))
		}
		return nil
	})
	words := []string{"one", "two", "three", "four", "five"}
	revisions := []int64{s.post(leads, leadOf("x", words[0])).is(201).written()}
	for _, w := range words[1:] {
		revisions = append(revisions, s.merge(leads+"/x", fmt.Sprintf(`{"spec":{"a":%q}}`, w)).is(200).written())
	}
	store.recent.Store(revisions[4])
	denied[revisions[2]], denied[revisions[4]] = true, true // the last one is recent

	shown := func(path string, want ...int64) {
		t.Helper()
		var list struct {
			Items []struct {
				Revision int64 `json:",string"`
			}
		}
		if err := json.Unmarshal([]byte(s.get(path).is(200).body), &list); err != nil {
			t.Fatal(err)
		}
		var got []int64
		for _, i := range list.Items {
			got = append(got, i.Revision)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: changes %v, want %v", path, got, want)
		}
	}
	for _, path := range []string{leads + "/x", leads} {
		shown(path+"?history=true", revisions[0], revisions[1], revisions[3], revisions[4])
		shown(path+"?history=true&limit=3", revisions[1], revisions[3], revisions[4])
		shown(path+fmt.Sprintf("?history=true&since=%d", revisions[1]), revisions[3], revisions[4])
	}

	watch := func(from int64) answer {
		return s.get(fmt.Sprintf("%s?watch=1&timeoutSeconds=1&resourceVersion=%d", leads, from)).is(200)
	}
	until := watch(revisions[0]).is(200, `"a":"two"`, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"leads.test.example.com \"x\" is forbidden: not then","reason":"Forbidden"`)
	until.lacks("three")
	until.lacks("four")
	watch(revisions[3]).is(200, `"a":"five"`).lacks("ERROR")
	s.get(fmt.Sprintf("%s?watch=1&resourceVersion=%d", leads, revisions[2])).is(403, "not then")
}
