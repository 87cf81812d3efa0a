package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/kv/memkv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/watchcache"
)

// A world is a store with the built-in kinds, with Leads, which are in
// namespaces, with Hubs, which are in none, and with a Lifecycle that runs. An
// object is named by its kind, its namespace if it is in one, and its name, as
// in "lead dev/a".
type world struct {
	t       *testing.T
	ctx     context.Context
	backend kv.Backend
	catalog *resource.Catalog
	objects *registry.Registry
	kinds   map[string]*resource.Definition
	cache   *watchcache.Cache
	refresh func() // called when the Catalog is asked to be as new as the store
	stop    func()
	found   *Lifecycle
}

// in runs a test in a world of its own, and on a clock of its own.
func in(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.start()
		w.create("namespace dev")
		w.settle()
		test(w)
	})
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, catalog: &resource.Catalog{}, kinds: map[string]*resource.Definition{}, stop: func() {}, refresh: func() {}}
	w.backend = memkv.New(memkv.Options{})
	cache := watchcache.New(w.backend, watchcache.Options{})
	w.cache = cache
	ctx, cancel := context.WithCancel(context.Background())
	w.ctx = ctx
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		w.stop()
		cancel()
		<-done
		_ = w.backend.Close()
	})
	definitions := append(builtin.Definitions(), custom("Lead", true), custom("Hub", false))
	for _, d := range definitions {
		// Events are served in two groups and stored once.
		if kind := strings.ToLower(d.Kind); w.kinds[kind] == nil {
			w.kinds[kind] = d
		}
	}
	w.catalog.Swap(resource.NewSet(definitions))
	w.objects = registry.New(w.backend, cache, registry.Options{
		Mutators: []registry.Mutator{&admission.NamespaceLifecycle{Cache: cache, Prefix: w.kinds["namespace"].StoragePrefix}},
	})
	return w
}

// start runs a Lifecycle, until the end of the test or stop.
func (w *world) start() *Lifecycle {
	l := New(Options{
		Backend: w.backend, Follow: w.cache.Follow, Catalog: w.catalog, Registry: w.objects, CA: []byte("trust me"),
		Refresh: func(context.Context) error { w.refresh(); return nil },
		Logger:  slog.New(slog.NewTextHandler(w.t.Output(), nil)),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	stopped := false
	before := w.stop
	w.stop = func() {
		before()
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
	w.found = l
	return l
}

func custom(kind string, namespaced bool) *resource.Definition {
	plural := strings.ToLower(kind) + "s"
	anything := true
	return resource.New(resource.Definition{
		Group: "test.example.com", Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
		Namespaced: namespaced, HasGeneration: true, StoragePrefix: "/registry/test.example.com/" + plural + "/",
		Versions: []*resource.Version{{
			Name: "v1", Served: true, Storage: true,
			Schema: schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) {
				return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}, nil
			}, model.Kind{Group: "test.example.com", Version: "v1", Kind: kind, ListKind: kind + "List"}),
		}},
	})
}

// settle returns when everybody waits for something to happen.
func (w *world) settle() { synctest.Wait() }

// sleep lets time go by.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (w *world) target(what string) registry.Target {
	w.t.Helper()
	kind, name, _ := strings.Cut(what, " ")
	d := w.kinds[kind]
	if d == nil {
		w.t.Fatalf("there is no kind %q", kind)
	}
	namespace := ""
	if d.Namespaced {
		namespace, name, _ = strings.Cut(name, "/")
	}
	return registry.StorageTarget(d, namespace, name)
}

func (w *world) key(what string) string {
	t := w.target(what)
	return t.Definition.Key(t.Namespace, t.Name)
}

// A feature is something an object is created with.
type feature func(w *world, t object.Tree)

func finalizer(names ...string) feature {
	return func(_ *world, t object.Tree) { object.SetFinalizers(t, names) }
}

// owner names an owner, which exists.
func owner(what string) feature { return reference(what, false) }

// blocking names an owner, which exists and is to wait for the object.
func blocking(what string) feature { return reference(what, true) }

func reference(what string, blocks bool) feature {
	return func(w *world, t object.Tree) {
		target := w.target(what)
		uid := object.UID(w.get(what))
		w.name(t, target, uid, blocks)
	}
}

// missing names an owner that does not exist.
func missing(what string) feature {
	return func(w *world, t object.Tree) { w.name(t, w.target(what), "no-such-uid", false) }
}

func (w *world) name(t object.Tree, target registry.Target, uid string, blocks bool) {
	list, _ := object.Metadata(t)["ownerReferences"].([]any)
	r := object.Tree{
		"apiVersion": target.Definition.APIVersion(target.Version.Name), "kind": target.Definition.Kind, "name": target.Name, "uid": uid,
	}
	if blocks {
		r["blockOwnerDeletion"] = true
	}
	object.Metadata(t)["ownerReferences"] = append(list, r)
}

func (w *world) create(what string, features ...feature) {
	w.t.Helper()
	if err := w.tryCreate(what, features...); err != nil {
		w.t.Fatalf("creating %s: %v", what, err)
	}
}

func (w *world) tryCreate(what string, features ...feature) error {
	target := w.target(what)
	t := object.Tree{
		"apiVersion": target.Definition.APIVersion(target.Version.Name), "kind": target.Definition.Kind,
		"metadata": object.Tree{"name": target.Name},
	}
	for _, f := range features {
		f(w, t)
	}
	for {
		_, err := w.objects.Create(w.ctx, target, registry.Given(t), registry.WriteOptions{})
		if !errors.Is(err, registry.ErrStale) {
			return err
		}
	}
}

// delete deletes an object with a propagation policy, or none if it is "".
func (w *world) delete(what string, policy metav1.DeletionPropagation) {
	w.t.Helper()
	options := &metav1.DeleteOptions{}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	if _, err := w.objects.Delete(w.ctx, w.target(what), options, registry.WriteOptions{}); err != nil {
		w.t.Fatalf("deleting %s: %v", what, err)
	}
}

// edit changes an object.
func (w *world) edit(what string, edit func(t object.Tree)) {
	w.t.Helper()
	_, err := w.objects.Modify(w.ctx, w.target(what), func(old object.Tree) (object.Tree, error) {
		t := object.CloneTree(old)
		edit(t)
		return t, nil
	}, registry.WriteOptions{})
	if err != nil {
		w.t.Fatalf("changing %s: %v", what, err)
	}
}

// release takes all finalizers from an object.
func (w *world) release(what string) {
	w.t.Helper()
	w.edit(what, func(t object.Tree) { object.SetFinalizers(t, nil) })
}

// get returns an object as it is stored, or nil.
func (w *world) get(what string) object.Tree {
	w.t.Helper()
	record, err := w.backend.Get(w.ctx, w.key(what), kv.Latest)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	t := object.Tree{}
	if err == nil {
		err = json.Unmarshal(record.Value, &t)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return t
}

// shows checks what there is when all is quiet, apart from what every namespace
// has and from events: an object a line, with its finalizers in brackets, "going"
// if it is being deleted, and after an arrow the names of its owners.
func (w *world) shows(want string) {
	w.t.Helper()
	w.settle()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if got := w.dump(); got != want {
		w.t.Fatalf("there is\n%s\n\nwant\n%s", got, want)
	}
}

func (w *world) dump() string {
	var lines []string
	for kind, d := range w.kinds {
		page, err := w.backend.List(w.ctx, kv.Range{Prefix: d.StoragePrefix})
		if err != nil {
			w.t.Fatal(err)
		}
		for _, r := range page.Records {
			if line := describe(kind, d, r); line != "" {
				lines = append(lines, line)
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func describe(kind string, d *resource.Definition, r kv.Record) string {
	name := strings.TrimPrefix(r.Key, d.StoragePrefix)
	if kind == "event" || strings.HasSuffix(name, "/"+defaultAccount) || strings.HasSuffix(name, "/"+rootCA) || kind+name == "namespacedev" && !strings.Contains(string(r.Value), "deletionTimestamp") {
		return ""
	}
	line := kind + " " + name
	h, err := readHeader(r.Key, r.Value, r.Revision)
	if err != nil {
		return line + " unreadable"
	}
	if len(h.finalizers) > 0 {
		line += fmt.Sprint(" ", h.finalizers)
	}
	if h.Deleting {
		line += " going"
	}
	for _, o := range h.owners {
		line += " <- " + o.Name
		if blocks(&o) {
			line += "!"
		}
	}
	return line
}
