package search

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// rights are the collections that a user may list, such as pods and blue/pods.
type rights struct {
	all   bool
	may   map[string]bool
	asked []string
}

func (r *rights) Authorize(_ context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	collection := strings.TrimPrefix(a.Namespace+"/"+a.Resource, "/")
	r.asked = append(r.asked, collection)
	if a.Verb == "list" && a.IsResource && (r.all || r.may[collection]) {
		return authz.Allow, "", nil
	}
	return authz.NoOpinion, "", nil
}

// A fixture is a Searcher over a store in memory.
type fixture struct {
	*Searcher
	t         *testing.T
	store     *interfering
	catalog   *resource.Catalog
	rights    *rights
	revisions map[string]int64
	unviewed  map[string]bool // names of objects without a view
}

func definition(group, plural, kind string, namespaced bool, versions ...string) *resource.Definition {
	d := resource.Definition{Group: group, Plural: plural, Kind: kind, Namespaced: namespaced, StoragePrefix: resource.BuiltInPrefix(plural)}
	for i, v := range versions {
		name, unserved := strings.CutSuffix(v, "-")
		d.Versions = append(d.Versions, &resource.Version{Name: name, Served: !unserved, Storage: i == 0})
	}
	return resource.New(d)
}

func newFixture(t *testing.T, definitions ...*resource.Definition) *fixture {
	f := &fixture{t: t, store: &interfering{Backend: memkv.New(memkv.Options{})}, catalog: &resource.Catalog{}, rights: &rights{all: true}, revisions: map[string]int64{}, unviewed: map[string]bool{}}
	cache := watchcache.New(f.store, watchcache.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	f.catalog.Swap(resource.NewSet(definitions))
	f.Searcher = New(Options{Cache: cache, Catalog: f.catalog, Authorizer: f.rights, Objects: f})
	t.Cleanup(func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
		cancel()
		<-done
	})
	return f
}

// View returns the stored object: versions have the same form, except for the field hidden.
func (f *fixture) View(_ context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Encoded, error) {
	e, err := o.Read()
	if err != nil || f.unviewed[o.Name()] {
		return object.Encoded{}, errors.Join(err, errors.New("it cannot be converted"))
	}
	shown := *e
	if o.APIVersion() != d.APIVersion(v.Name) {
		shown.JSON = []byte(strings.ReplaceAll(string(e.JSON), "hidden", "shown"))
	}
	return shown, nil
}

// put stores an object; without a spec, it deletes it.
func (f *fixture) put(d *resource.Definition, namespace, name, spec string) {
	f.t.Helper()
	key := d.Key(namespace, name)
	w := kv.Write{Key: key, Expect: f.revisions[key]}
	if spec != "" {
		w.Value = fmt.Appendf(nil, `{"apiVersion":%q,"kind":%q,"metadata":{"labels":{"app":%q},"name":%q,"namespace":%q},"spec":%s}`,
			strings.TrimPrefix(d.Group+"/"+d.StorageVersion().Name, "/"), d.Kind, "of-"+name, name, namespace, spec)
	}
	revision, err := f.store.Commit(f.t.Context(), w)
	if err != nil {
		f.t.Fatal(err)
	}
	if f.revisions[key] = revision; spec == "" {
		delete(f.revisions, key)
	}
}

// get returns the answer to a request, and its code.
func (f *fixture) get(query string) (r Results, code int, body string) {
	f.t.Helper()
	w := httptest.NewRecorder()
	ctx := request.With(f.t.Context(), &request.Request{User: &request.User{Name: "jane"}})
	f.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/search?"+query, nil))
	if w.Code == 200 {
		if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
			f.t.Fatal(err)
		}
	}
	return r, w.Code, w.Body.String()
}

// found returns the results of a query as text.
func (f *fixture) found(q string) string {
	f.t.Helper()
	r, _, body := f.get("q=" + url.QueryEscape(q))
	if r.Indexing {
		f.t.Error("the index is not complete:", body)
	}
	var all []string
	for _, i := range r.Items {
		all = append(all, fmt.Sprintf("%s/%s/%s %s=%s", i.Resource, i.Namespace, i.Name, i.Path, mark(i)))
	}
	return strings.Join(all, "; ")
}

// mark returns the value with the match in brackets.
func mark(i *Item) string {
	return i.Value[:i.Matched.Start] + "[" + i.Value[i.Matched.Start:i.Matched.End] + "]" + i.Value[i.Matched.End:]
}

func (f *fixture) expect(q, want string) {
	f.t.Helper()
	if got := f.found(q); got != want {
		f.t.Errorf("%s:\n%s\nwant\n%s", q, got, want)
	}
}

// index returns the present index.
func (f *fixture) index() *Index {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session.mu.Lock()
	defer f.session.mu.Unlock()
	return f.session.index
}

// A search sees each change that was acknowledged before it.
func TestSearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, nodes := definition("", "pods", "Pod", true, "v1"), definition("", "nodes", "Node", false, "v1")
		f := newFixture(t, pods, nodes)
		f.expect("web", "")
		f.put(pods, "blue", "web", `{"image":"nginx","ports":[{"n":8080}]}`)
		f.put(pods, "a-b", "web-2", `{"image":"apache"}`)
		f.put(pods, "a", "web-2", `{"image":"Apache"}`)
		f.put(nodes, "", "worker", `{"os":"webOS","a.b/c":"dotted"}`)
		f.expect("web", "pods/blue/web metadata.name=[web]; pods/a-b/web-2 metadata.name=[web]-2; pods/a/web-2 metadata.name=[web]-2; nodes//worker spec.os=[web]OS")
		f.expect("web 808", "pods/blue/web spec.ports[0].n=[808]0")
		f.expect("apache WEB a-b", "pods/a-b/web-2 spec.image=[apache]")
		f.expect("app=of-web", "pods/a-b/web-2 metadata.labels.app=[app=of-web]-2; pods/a/web-2 metadata.labels.app=[app=of-web]-2; pods/blue/web metadata.labels.app=[app=of-web]")
		f.expect("dotted", "nodes//worker spec[a.b/c]=[dotted]")
		f.expect("node wor", "nodes//worker kind=[Node]")
		f.expect("nodes", "nodes//worker resource=[nodes]")
		f.expect("blu", "pods/blue/web metadata.namespace=[blu]e")

		f.put(pods, "blue", "web", `{"image":"caddy"}`)
		f.expect("nginx", "")
		f.expect("caddy", "pods/blue/web spec.image=[caddy]")
		f.put(pods, "blue", "web", "")
		f.expect("caddy", "")
		f.put(pods, "blue", "web", `{"image":"again"}`)
		f.expect("again web", "pods/blue/web spec.image=[again]")

		// An object without a view is found by its name alone.
		f.unviewed["web"] = true
		f.expect("again", "")
		f.expect("web", "pods/blue/web metadata.name=[web]; pods/a-b/web-2 metadata.name=[web]-2; pods/a/web-2 metadata.name=[web]-2; nodes//worker spec.os=[web]OS")
	})
}

// interfering is a store with a write after each of its answers about its revision.
type interfering struct {
	kv.Backend
	write func()
}

func (i *interfering) Revision(ctx context.Context) (int64, error) {
	revision, err := i.Backend.Revision(ctx)
	if write := i.write; write != nil {
		i.write = nil
		write()
	}
	return revision, err
}

// An object that is written between the begin of an index and the look at its kind is found once.
func TestSearchDuringWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := definition("", "pods", "Pod", true, "v1")
		f := newFixture(t, pods)
		f.expect("web", "")
		time.Sleep(DefaultIdle)
		s := newSession(&f.options)
		defer s.end()
		f.store.write = func() {
			f.put(pods, "blue", "web", `{"a":"b"}`)
			synctest.Wait()
		}
		if err := s.build(); err != nil {
			t.Fatal(err)
		}
		f.put(pods, "blue", "web-2", `{"a":"b"}`)
		var ended sync.WaitGroup
		ended.Go(func() { _ = s.follow() })
		synctest.Wait()
		if got := names(s.index, "web b"); got != "web web-2" {
			t.Error(got)
		}
		s.end()
		ended.Wait()
	})
}

// Kinds come and go with the catalog, while the index is in use.
func TestSearchKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, widgets := definition("", "pods", "Pod", true, "v1"), definition("example.com", "widgets", "Widget", true, "v1", "v2")
		f := newFixture(t, pods)
		f.put(pods, "blue", "web", `{}`)
		f.put(widgets, "blue", "web-1", `{"color":"hidden-red"}`)
		f.expect("web", "pods/blue/web metadata.name=[web]")
		f.catalog.Swap(resource.NewSet([]*resource.Definition{pods, widgets}))
		f.expect("web", "pods/blue/web metadata.name=[web]; widgets/blue/web-1 metadata.name=[web]-1")
		f.put(widgets, "blue", "web-2", `{"color":"hidden-blue"}`)
		f.expect("hidden", "widgets/blue/web-1 spec.color=[hidden]-red; widgets/blue/web-2 spec.color=[hidden]-blue")

		// The stored version is not served any more: another one decides about the texts.
		f.catalog.Swap(resource.NewSet([]*resource.Definition{pods, definition("example.com", "widgets", "Widget", true, "v1-", "v2")}))
		f.expect("hidden", "")
		f.expect("blue web-2", "widgets/blue/web-2 metadata.namespace=[blue]")
		if r, _, body := f.get("q=web-2"); r.Items[0].Version != "v2" || r.Items[0].Group != "example.com" {
			t.Error(body)
		}

		f.catalog.Swap(resource.NewSet([]*resource.Definition{pods, definition("example.com", "widgets", "Widget", true, "v1-")}))
		f.expect("web", "pods/blue/web metadata.name=[web]")
		f.catalog.Swap(resource.NewSet([]*resource.Definition{pods}))
		f.expect("web", "pods/blue/web metadata.name=[web]")
		f.catalog.Swap(resource.NewSet([]*resource.Definition{pods, widgets}))
		f.expect("hidden", "widgets/blue/web-1 spec.color=[hidden]-red; widgets/blue/web-2 spec.color=[hidden]-blue")
	})
}

// A user finds the objects that it may list. Each collection is asked for once.
func TestSearchRights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods, nodes, leases := definition("", "pods", "Pod", true, "v1"), definition("", "nodes", "Node", false, "v1"), definition("", "leases", "Lease", true, "v1")
		f := newFixture(t, pods, nodes, leases)
		for _, namespace := range []string{"blue", "green"} {
			for i := range 3 {
				f.put(pods, namespace, fmt.Sprint("web-", i), `{}`)
				f.put(leases, namespace, fmt.Sprint("web-", i), `{}`)
			}
		}
		f.put(nodes, "", "web-node", `{}`)
		*f.rights = rights{may: map[string]bool{"leases": true, "green/pods": true}}
		f.expect("web-1", "leases/blue/web-1 metadata.name=[web-1]; leases/green/web-1 metadata.name=[web-1]; pods/green/web-1 metadata.name=[web-1]")
		f.rights.asked = nil
		f.expect("web-", strings.Join([]string{
			"leases/blue/web-0 metadata.name=[web-]0; leases/blue/web-1 metadata.name=[web-]1; leases/blue/web-2 metadata.name=[web-]2",
			"leases/green/web-0 metadata.name=[web-]0; leases/green/web-1 metadata.name=[web-]1; leases/green/web-2 metadata.name=[web-]2",
			"pods/green/web-0 metadata.name=[web-]0; pods/green/web-1 metadata.name=[web-]1; pods/green/web-2 metadata.name=[web-]2",
		}, "; "))
		if got := strings.Join(f.rights.asked, " "); got != "leases nodes pods blue/pods green/pods" {
			t.Error("asked for", got)
		}
		*f.rights = rights{}
		f.expect("web", "")
	})
}

func TestSearchRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := definition("", "pods", "Pod", true, "v1")
		f := newFixture(t, pods)
		for i := range 300 {
			f.put(pods, "blue", fmt.Sprintf("web-%03d", i), `{}`)
		}
		for query, want := range map[string]struct {
			n         int
			remaining bool
		}{
			"q=web": {50, true}, "q=web&limit=1": {1, true}, "q=web&limit=200": {200, true}, "q=web-00": {10, false}, "q=web-00&limit=10": {10, false},
			"q=web-00&limit=9": {9, true}, "q=nothing": {0, false}, "q=web&limit=": {50, true},
		} {
			r, _, body := f.get(query)
			if len(r.Items) != want.n || r.Remaining != want.remaining || r.Kind != "SearchResults" || r.APIVersion != "search.anykind.dev/v1" || !strings.Contains(body, `"items":[`) {
				t.Errorf("%s: %d items, %s", query, len(r.Items), body[:min(300, len(body))])
			}
		}
		for query, want := range map[string]string{
			"": "q: Invalid value", "q=": "q: Invalid value", "q=+%09": "q: Invalid value", "q=%ff": "q: Invalid value",
			"q=" + strings.Repeat("x", 257):  "q: Invalid value: must be 1 to 12 words of at most 256 bytes together",
			"q=0+1+2+3+4+5+6+7+8+9+a+b+c":    "q: Invalid value",
			"q=a&limit=0":                    `limit: Invalid value: \"0\": must be a number from 1 to 200`,
			"q=a&limit=201":                  "limit: Invalid value",
			"q=a&limit=x":                    "limit: Invalid value",
			"q=a&limit=-1":                   "limit: Invalid value",
			"q=a&limit=99999999999999999999": "limit: Invalid value",
		} {
			_, code, body := f.get(query)
			var s metav1.Status
			if err := json.Unmarshal([]byte(body), &s); err != nil || code != 400 || s.Reason != metav1.StatusReasonBadRequest || !strings.Contains(body, want) {
				t.Errorf("%s: %d %s", query, code, body)
			}
		}
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/search?q=a", nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST: %d", w.Code)
		}
	})
}

// Nothing is left of an index after the idle time, and after Close.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := definition("", "pods", "Pod", true, "v1")
		f := newFixture(t, pods)
		f.put(pods, "blue", "web", `{}`)
		synctest.Wait()
		runs := func() bool {
			stacks := make([]byte, 1<<20)
			return bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("search.(*session).run("))
		}
		check := func(alive bool, index weak.Pointer[Index]) {
			t.Helper()
			synctest.Wait()
			if runs() != alive {
				t.Errorf("the goroutine of the index runs: %v, want %v", runs(), alive)
			}
			runtime.GC()
			if (index.Value() != nil) != alive {
				t.Errorf("the index exists: %v, want %v", index.Value() != nil, alive)
			}
		}
		indexed := func() weak.Pointer[Index] {
			f.expect("web", "pods/blue/web metadata.name=[web]")
			return weak.Make(f.index())
		}
		index := indexed()
		check(true, index)
		time.Sleep(DefaultIdle - time.Second)
		if again := indexed(); again != index {
			t.Error("another index")
		}
		time.Sleep(DefaultIdle - time.Second)
		check(true, index)
		time.Sleep(time.Second)
		check(false, index)
		index = indexed()
		check(true, index)
		if err := f.Close(t.Context()); err != nil {
			t.Error(err)
		}
		check(false, index)
		if _, code, body := f.get("q=web"); code != 503 {
			t.Error(code, body)
		}
	})
}

// An index of which most documents are of earlier states is replaced.
func TestRebuild(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pods := definition("", "pods", "Pod", true, "v1")
		f := newFixture(t, pods)
		f.put(pods, "blue", "web", `{"n":0}`)
		f.expect("web", "pods/blue/web metadata.name=[web]")
		first := f.index()
		for i := range minChanges + 2 {
			f.put(pods, "blue", "web", fmt.Sprintf(`{"n":%d}`, i))
		}
		synctest.Wait()
		f.expect(fmt.Sprint(minChanges+1), fmt.Sprintf("pods/blue/web spec.n=[%d]", minChanges+1))
		if x := f.index(); x == first || x.len > 3 {
			t.Errorf("%d documents, another index: %v", x.len, x != first)
		}
	})
}

// Searches during a random history of writes find the present state.
func TestSearchHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(3, 4))
		pods, widgets := definition("", "pods", "Pod", true, "v1"), definition("example.com", "widgets", "Widget", false, "v1")
		f := newFixture(t, pods, widgets)
		present := map[string]string{}
		for step := range 600 {
			d, namespace := pods, []string{"blue", "green"}[random.IntN(2)]
			if random.IntN(3) == 0 {
				d, namespace = widgets, ""
			}
			name, value := fmt.Sprint("web-", random.IntN(10)), fmt.Sprint("v", random.IntN(10))
			key := d.Plural + "/" + namespace + "/" + name
			if random.IntN(4) > 0 {
				f.put(d, namespace, name, `{"v":"`+value+`"}`)
				present[key] = value
			} else if present[key] != "" {
				f.put(d, namespace, name, "")
				delete(present, key)
			}
			if step%7 > 0 {
				continue
			}
			if random.IntN(10) == 0 {
				time.Sleep(DefaultIdle)
			}
			got, want := strings.Count(f.found(value), "spec.v="), 0
			for _, v := range present {
				if v == value {
					want++
				}
			}
			if got != want {
				t.Fatalf("step %d: %s: %d, want %d", step, value, got, want)
			}
		}
	})
}
