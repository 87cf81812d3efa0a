package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
)

// Options describe a check. All fields are required.
type Options struct {
	Seed              uint64
	Writers, Watchers int
	// Client returns an API with connections of its own.
	Client func() (process.API, error)
	// Ready waits until a server may be available.
	Ready func(context.Context) error
	// Disturb injects faults, until ctx ends or it has injected enough. When it returns, all servers
	// are healthy.
	Disturb func(ctx context.Context) error
	// Late means that a write without a response may take effect even after a later read of its
	// object.
	Late bool
}

// A run is one store with its clients, across restarts of its servers.
type run struct {
	testing.TB
	Options

	ledger   *ledger
	api      process.API
	start    int64
	writers  []*writer
	watchers []*watcher
}

// waitTimeout limits the time besides the faults, on a busy machine.
const waitTimeout = 10 * time.Minute

// Check runs writers and watchers, and then checks every watch: "A watch is ordered, unique, without
// gaps, and resumable at the last revision it delivered; or it says 410. A bookmark is never ahead of
// an undelivered event."
func Check(t testing.TB, o Options) {
	t.Helper()
	r := &run{TB: t, Options: o, ledger: newLedger()}
	r.prepare()
	r.work()
	r.verify()
}

// client returns an API with connections of its own.
func (r *run) client() process.API {
	r.Helper()
	api, err := r.Client()
	if err != nil {
		r.Fatal(err)
	}
	return api
}

// prepare defines the kinds, and creates the shared objects.
func (r *run) prepare() {
	r.Helper()
	r.api = r.client()
	must := func(path string, in, out any) {
		r.Helper()
		if err := r.api.Do(r.Context(), http.MethodPost, path, in, out); err != nil {
			r.Fatal(err)
		}
	}
	for i := range kinds {
		if d := kinds[i].definition(); d != nil {
			must("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", d, nil)
		}
	}
	var other object
	must("/api/v1/namespaces", object{APIVersion: "v1", Kind: "Namespace", Metadata: metadata{Name: "other"}}, &other)
	for i := range r.Writers {
		r.writers = append(r.writers, &writer{
			number: i, random: rand.New(rand.NewPCG(r.Seed, uint64(i)+1)), api: r.client(),
			ready: r.Ready, late: r.Late, ledger: r.ledger, known: map[key]state{}, names: map[key]int{},
		})
	}
	// Other clients also write, outside of this test.
	r.start = r.startRevision()
	for i := range r.Watchers {
		w := &watcher{
			random: rand.New(rand.NewPCG(r.Seed, uint64(i)+1000)), api: r.client(), ready: r.Ready, ledger: r.ledger,
			start: r.start, steady: i < len(kinds), final: make(chan int64, 1), begun: make(chan struct{}),
		}
		w.accept = accepts[w.random.IntN(len(accepts))]
		w.of = r.selection(i, w.random)
		r.watchers = append(r.watchers, w)
	}
	for i := range kinds {
		for _, namespace := range kinds[i].spaces() {
			for n := range shared {
				r.create(key{i, namespace, sharedName(n)}, "")
			}
		}
	}
}

// startRevision returns the revision of a list of all watched kinds. At this time they have only objects of
// other clients.
func (r *run) startRevision() int64 {
	r.Helper()
	first := int64(0)
	for i := range kinds {
		var list struct {
			Metadata metadata
			Items    []object
		}
		path := kinds[i].collection("")
		if i > 0 {
			path += fmt.Sprintf("?resourceVersion=%d&resourceVersionMatch=Exact", first)
		}
		if err := r.api.Do(r.Context(), http.MethodGet, path, nil, &list); err != nil {
			r.Fatal(err)
		}
		now, err := list.Metadata.state()
		if err != nil {
			r.Fatal(err)
		}
		for _, item := range list.Items {
			was, err := item.Metadata.state()
			if err != nil {
				r.Fatal(err)
			}
			if err := r.ledger.wrote(key{i, item.Metadata.Namespace, item.Metadata.Name}, was); err != nil {
				r.Fatal(err)
			}
		}
		if i == 0 {
			first = now.revision
		}
	}
	return first
}

// create creates an object that the ledger records.
func (r *run) create(k key, label string) {
	r.Helper()
	value := "first of " + k.String()
	r.write(http.MethodPost, kinds[k.kind].collection(k.namespace), k, value, newObject(k, label, value, ""))
}

// selection returns the selection of a watcher. The first ones select all of a kind.
func (r *run) selection(i int, random *rand.Rand) selection {
	s := selection{kind: i % len(kinds), selects: labelSelectors[0].selects}
	if i < len(kinds) {
		return s
	}
	k := &kinds[s.kind]
	if random.IntN(2) == 0 {
		spaces := k.spaces()
		s.namespace = spaces[random.IntN(len(spaces))]
	}
	l := labelSelectors[random.IntN(len(labelSelectors))]
	s.labels, s.selects = l.text, l.selects
	switch random.IntN(6) {
	case 0:
		s.name = sharedName(random.IntN(shared))
	case 1:
		s.notName = sharedName(random.IntN(shared))
	case 2:
		if k.namespaced && s.namespace == "" {
			s.inSpace = namespaces[random.IntN(len(namespaces))]
		}
	}
	return s
}

// work runs writers, watchers and faults.
func (r *run) work() {
	r.Helper()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	problems := make(chan error, len(r.writers)+len(r.watchers))
	var writing, watching sync.WaitGroup
	stop := make(chan struct{})
	for _, w := range r.watchers {
		watching.Go(func() {
			if err := w.run(ctx); err != nil {
				problems <- err
			}
		})
	}
	for _, w := range r.watchers {
		select {
		case <-w.begun:
		case err := <-problems:
			r.Fatal(err)
		}
	}
	for _, w := range r.writers {
		writing.Go(func() {
			if err := w.run(ctx, stop); err != nil {
				problems <- err
			}
		})
	}
	failed := r.disturb(ctx, problems)
	bound := time.AfterFunc(waitTimeout, cancel)
	defer bound.Stop()
	close(stop)
	writing.Wait()
	if failed == nil {
		r.end()
	} else {
		cancel()
	}
	watching.Wait()
	close(problems)
	for err := range problems {
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		r.Fatal(failed)
	}
}

// disturb injects faults, unless a violation occurs first.
func (r *run) disturb(ctx context.Context, problems <-chan error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- r.Disturb(ctx) }()
	select {
	case err := <-problems:
		cancel()
		<-over
		return err
	case err := <-over:
		return err
	}
}

// end makes a last event for each watcher, and tells it the revision. It then makes further events,
// for watchers that had passed theirs before they knew it.
func (r *run) end() {
	r.Helper()
	var last []key
	for i := range kinds {
		for _, namespace := range kinds[i].spaces() {
			k := key{i, namespace, "zz-end"}
			r.create(k, "")
			last = append(last, k)
			for n := range shared {
				last = append(last, key{i, namespace, sharedName(n)})
			}
		}
	}
	// An object that gets each label in turn enters or leaves every label selection.
	touch := func(round string) {
		for _, k := range last {
			for _, label := range labels {
				r.patch(k, label, round)
			}
		}
	}
	touch("last")
	for _, w := range r.watchers {
		revision := int64(0)
		for _, k := range last {
			revision = max(revision, r.ledger.told(&w.of, k))
		}
		if revision == 0 {
			r.Fatalf("%v sees no last event", &w.of)
		}
		w.final <- revision
	}
	touch("after the last")
}

func (r *run) patch(k key, label, round string) {
	r.Helper()
	value := fmt.Sprintf("%s %q of %v", round, label, k)
	r.write(http.MethodPatch, k.path(), k, value, patchOf(label, value, ""))
}

// write makes a write without faults.
func (r *run) write(method, path string, k key, value string, in any) {
	r.Helper()
	r.ledger.tried(k, value)
	var out object
	if err := r.api.Do(r.Context(), method, path, in, &out); err != nil {
		r.Fatal(err)
	}
	now, err := out.Metadata.state()
	if err == nil {
		err = r.ledger.wrote(k, now)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// verify compares all stories with the log.
func (r *run) verify() {
	r.Helper()
	stories, events, bookmarks, sessions := 0, 0, 0, 0
	for _, w := range r.watchers {
		sessions += w.sessions
		for _, s := range w.stories {
			stories++
			for _, o := range s.events {
				events++
				if o.what == bookmark {
					bookmarks++
				}
				r.ledger.learn(o)
			}
		}
	}
	logs, err := r.ledger.logs()
	if err != nil {
		r.Error(err)
	}
	written := 0
	for _, log := range logs {
		written += len(log)
	}
	wrong := 0
	for _, w := range r.watchers {
		for _, s := range w.stories {
			if err := s.check(logs[s.of.kind], w.end); err != nil {
				if wrong++; wrong <= 10 {
					r.Error(err)
				}
			}
		}
	}
	r.Logf("%d writes; %d watchers were told %d events and %d bookmarks, in %d stories over %d connections; %d stories are wrong",
		written, len(r.watchers), events-bookmarks, bookmarks, stories, sessions, wrong)
}
