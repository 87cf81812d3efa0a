// Package controllertest has a World for tests of controllers: a store, a registry that serves its
// kinds, and an Engine with some controllers, on a fake clock.
//
// Its functions have short names, so that a test reads as a list of events: objects that are
// created, owned and deleted, and the remaining objects.
package controllertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/admission/quota"
	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/usage"
	"github.com/anykind/anykind/internal/controller"
	quotacontroller "github.com/anykind/anykind/internal/controller/quota"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/schema/model"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A World is a store with the built-in kinds, the namespaced kind Lead, the cluster-scoped kind
// Hub, and an Engine. Tests name an object by its kind, its namespace if it has one, and its name,
// as in "lead dev/a".
type World struct {
	T        *testing.T
	Ctx      context.Context
	Backend  kv.Backend
	Cache    *watchcache.Cache
	Catalog  *resource.Catalog
	Registry *registry.Registry
	Kinds    map[string]*resource.Definition
	// Addresses allocates for Services: 10.0.0.0/24, and ports from 30000 to 30099.
	Addresses *allocation.Allocator
	Quotas    quotacontroller.Options         // of the admission plugin that charges creates
	Refresh   func()                          // called when the Catalog is refreshed
	Admit     func(*registry.Admission) error // may reject a write
	Now       func() time.Time                // the clock of the controllers, if they have their own

	controllers []controller.Descriptor
	registrar   *crd.Registrar
	stop        func()
}

// In runs a test in a new world in a synctest bubble. The namespace dev exists.
func In(t *testing.T, controllers []controller.Descriptor, test func(w *World)) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, controllers)
		w.Start()
		w.Create("namespace dev")
		w.Wait()
		test(w)
	})
}

// New returns a world without a running Engine, with some feature gates on. It must be called inside a synctest bubble.
func New(t *testing.T, controllers []controller.Descriptor, gates ...gate.Name) *World {
	on := map[gate.Name]bool{}
	for _, name := range gates {
		on[name] = true
	}
	w := &World{
		T: t, Catalog: &resource.Catalog{}, Kinds: map[string]*resource.Definition{}, controllers: controllers,
		Refresh: func() {}, Admit: func(*registry.Admission) error { return nil }, stop: func() {},
	}
	w.Backend = memkv.New(memkv.Options{})
	w.Cache = watchcache.New(w.Backend, watchcache.Options{})
	definitions := append(builtin.Definitions(), Custom("Lead", true), Custom("Hub", false))
	w.Addresses = builtin.GiveAddresses(resource.NewSet(definitions), w.Cache,
		[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, allocation.PortRange{Base: 30000, Size: 100}, nil)
	for _, d := range definitions {
		// Events are served in two groups and stored once.
		if kind := strings.ToLower(d.Kind); w.Kinds[kind] == nil {
			w.Kinds[kind] = d
		}
	}
	namespaces := &admission.NamespaceLifecycle{Namespaces: admission.Namespaces{Cache: w.Cache, Prefix: w.Kinds["namespace"].StoragePrefix}}
	core := resource.NewSet(definitions)
	w.Quotas = quotacontroller.Options{Cache: w.Cache, Evaluators: usage.New(w.Cache, core), Turns: &quota.Turns{}}
	charging, err := quota.New(quota.Options{Cache: w.Cache, Core: core, Evaluators: w.Quotas.Evaluators, Turns: w.Quotas.Turns})
	if err != nil {
		t.Fatal(err)
	}
	w.Registry = registry.New(w.Backend, w.Cache, registry.Options{Plugins: registry.Plugins{
		Mutators: []registry.Mutator{namespaces}, Validators: []registry.Validator{admitter{w}}, Resolvers: []registry.Resolver{charging},
	}, Gates: gate.With(on), Source: func(d *resource.Definition) (kv.Guard, bool) { return w.registrar.Source(d) }})
	w.registrar = crd.New(crd.Options{Cache: w.Cache, Catalog: w.Catalog, Objects: w.Registry, BuiltIn: definitions})
	w.Kinds["customresourcedefinition"] = w.registrar.Definition()

	ctx, cancel := context.WithCancel(context.Background())
	w.Ctx = ctx
	done := make(chan error, 2)
	go func() { done <- w.Cache.Run(ctx) }()
	go func() { done <- w.registrar.Run(ctx) }()
	t.Cleanup(func() {
		w.stop()
		cancel()
		<-done
		<-done
		_ = w.Backend.Close()
	})
	if err := w.registrar.Fresh(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

// An admitter calls Admit of the World.
type admitter struct{ *World }

func (a admitter) Validate(_ context.Context, request *registry.Admission) error {
	return a.Admit(request)
}

// Start runs an Engine until Stop or the end of the test. Several engines stand for several
// servers.
func (w *World) Start() {
	e := controller.New(controller.Options{
		Objects: w.Objects(), Follow: w.Cache.Follow, Controllers: w.controllers,
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
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
			w.T.Error(err)
		}
	}
}

// Objects returns the Objects of an Engine of the world.
func (w *World) Objects() controller.Objects {
	return controller.Objects{
		Backend: w.Backend, Catalog: w.Catalog, Registry: w.Registry, Manager: controller.Manager,
		Refresh: func(ctx context.Context) error { w.Refresh(); return w.registrar.Fresh(ctx) },
		Now:     w.Now,
		Logger:  slog.New(slog.NewTextHandler(w.T.Output(), nil)),
	}
}

// Stop stops all Engines.
func (w *World) Stop() { w.stop() }

// Define creates a CustomResourceDefinition of a kind of the group test.example.com with the
// version v2.
func (w *World) Define(kind string, namespaced bool, features ...Feature) {
	w.T.Helper()
	scope := "Cluster"
	if namespaced {
		scope = "Namespaced"
	}
	plural := strings.ToLower(kind) + "s"
	spec := func(_ *World, t object.Tree) {
		t["spec"] = object.Tree{
			"group": "test.example.com", "scope": scope,
			"names": object.Tree{"plural": plural, "kind": kind},
			"versions": []any{object.Tree{
				"name": "v2", "served": true, "storage": true, // v1 is used by built-in kinds
				"schema": object.Tree{"openAPIV3Schema": object.Tree{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		}
	}
	w.Create("customresourcedefinition "+plural+".test.example.com", append([]Feature{spec}, features...)...)
	w.Kinds[strings.ToLower(kind)] = w.Catalog.Set().Lookup("test.example.com", plural)
}

// Custom returns the Definition of a kind of the group test.example.com without a schema.
func Custom(kind string, namespaced bool) *resource.Definition {
	plural := strings.ToLower(kind) + "s"
	anything := true
	return resource.New(resource.Definition{
		Group: "test.example.com", Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
		Namespaced: namespaced, GroupPriority: 1000, HasGeneration: true, StoragePrefix: "/registry/test.example.com/" + plural + "/",
		Versions: []*resource.Version{{
			Name: "v1", Served: true, Storage: true, Priority: 100,
			Schema: schema.Lazy(func() (*apiextensionsv1.JSONSchemaProps, error) {
				return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &anything}, nil
			}, model.Kind{Group: "test.example.com", Version: "v1", Kind: kind, ListKind: kind + "List"}),
		}},
	})
}

// Wait waits until all goroutines are blocked.
func (w *World) Wait() { synctest.Wait() }

// Sleep advances the fake clock.
func (w *World) Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// Target returns the target of an object.
func (w *World) Target(what string) registry.Target {
	w.T.Helper()
	kind, name, _ := strings.Cut(what, " ")
	d := w.Kinds[kind]
	if d == nil {
		w.T.Fatalf("there is no kind %q", kind)
	}
	if now := w.Catalog.Set().Lookup(d.Group, d.Plural); now != nil {
		d = now
	}
	namespace := ""
	if d.Namespaced {
		namespace, name, _ = strings.Cut(name, "/")
	}
	return registry.StorageTarget(d, namespace, name)
}

// Key returns the key of an object.
func (w *World) Key(what string) string {
	t := w.Target(what)
	return t.Definition.Key(t.Namespace, t.Name)
}

// A Feature changes an object before its creation.
type Feature func(w *World, t object.Tree)

// Finalizer adds finalizers.
func Finalizer(names ...string) Feature {
	return func(_ *World, t object.Tree) { object.SetFinalizers(t, names) }
}

// Owner adds an existing owner.
func Owner(what string) Feature { return reference(what, false) }

// Blocking adds an existing owner with blockOwnerDeletion.
func Blocking(what string) Feature { return reference(what, true) }

func reference(what string, blocks bool) Feature {
	return func(w *World, t object.Tree) {
		target := w.Target(what)
		uid := object.UID(w.Get(what))
		w.Name(t, target, uid, blocks)
	}
}

// Missing adds an owner that does not exist.
func Missing(what string) Feature {
	return func(w *World, t object.Tree) { w.Name(t, w.Target(what), "no-such-uid", false) }
}

// Name adds an owner reference to t.
func (w *World) Name(t object.Tree, target registry.Target, uid string, blocks bool) {
	list, _ := object.Metadata(t)["ownerReferences"].([]any)
	r := object.Tree{
		"apiVersion": target.Definition.APIVersion(target.Version.Name), "kind": target.Definition.Kind, "name": target.Name, "uid": uid,
	}
	if blocks {
		r["blockOwnerDeletion"] = true
	}
	object.Metadata(t)["ownerReferences"] = append(list, r)
}

// Create creates an object.
func (w *World) Create(what string, features ...Feature) {
	w.T.Helper()
	if err := w.TryCreate(what, features...); err != nil {
		w.T.Fatalf("creating %s: %v", what, err)
	}
}

// TryCreate creates an object and returns the error.
func (w *World) TryCreate(what string, features ...Feature) (err error) {
	w.T.Helper()
	for range controller.StaleRetries {
		target := w.Target(what)
		t := object.Tree{
			"apiVersion": target.Definition.APIVersion(target.Version.Name), "kind": target.Definition.Kind,
			"metadata": object.Tree{"name": target.Name},
		}
		for _, f := range features {
			f(w, t)
		}
		target.Version.Schema.Default(t)
		if _, err = w.Registry.Create(w.Ctx, target, registry.Given(t), registry.WriteOptions{}); !errors.Is(err, registry.ErrStale) {
			return err
		}
	}
	return err
}

// Store writes an object from YAML directly to the store, without validation, as another server
// could.
func (w *World) Store(what, text string) {
	w.T.Helper()
	target := w.Target(what)
	data, err := yaml.YAMLToJSON([]byte(text))
	t := object.Tree{}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err != nil {
		w.T.Fatal(err)
	}
	t["apiVersion"], t["kind"] = target.Definition.APIVersion(target.Version.Name), target.Definition.Kind
	object.SetMetaString(t, "name", target.Name)
	object.SetMetaString(t, "namespace", target.Namespace)
	object.SetMetaString(t, "uid", "uid-of-"+target.Name)
	object.SetMetaString(t, "creationTimestamp", object.Timestamp(time.Now()))
	write := kv.Write{Key: w.Key(what), Value: object.AppendJSON(nil, t)}
	if record, err := w.Backend.Get(w.Ctx, write.Key, kv.Latest); err == nil {
		write.Expect = record.Revision
	}
	if _, err := w.Backend.Commit(w.Ctx, write); err != nil {
		w.T.Fatal(err)
	}
}

// Warnings returns the reasons of all Events, sorted by name of the Event.
func (w *World) Warnings() (reasons []string) {
	w.T.Helper()
	w.Wait()
	page, err := w.Backend.List(w.Ctx, kv.Range{Prefix: w.Kinds["event"].StoragePrefix})
	if err != nil {
		w.T.Fatal(err)
	}
	for _, r := range page.Records {
		var event struct{ Reason string }
		if err := json.Unmarshal(r.Value, &event); err != nil {
			w.T.Fatal(err)
		}
		reasons = append(reasons, event.Reason)
	}
	return reasons
}

// Delete deletes an object with a propagation policy, or without one if it is "".
func (w *World) Delete(what string, policy metav1.DeletionPropagation) {
	w.T.Helper()
	options := &metav1.DeleteOptions{}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	if _, err := w.Registry.Delete(w.Ctx, w.Target(what), options, registry.WriteOptions{}); err != nil {
		w.T.Fatalf("deleting %s: %v", what, err)
	}
}

// Edit changes an object.
func (w *World) Edit(what string, edit func(t object.Tree)) {
	w.T.Helper()
	_, err := w.Registry.Modify(w.Ctx, w.Target(what), func(old object.Tree) (object.Tree, error) {
		t := object.CloneTree(old)
		edit(t)
		return t, nil
	}, registry.WriteOptions{})
	if err != nil {
		w.T.Fatalf("changing %s: %v", what, err)
	}
}

// Release removes all finalizers of an object.
func (w *World) Release(what string) {
	w.T.Helper()
	w.Edit(what, func(t object.Tree) { object.SetFinalizers(t, nil) })
}

// Get returns the stored object, or nil.
func (w *World) Get(what string) object.Tree {
	w.T.Helper()
	record, err := w.Backend.Get(w.Ctx, w.Key(what), kv.Latest)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	t := object.Tree{}
	if err == nil {
		err = json.Unmarshal(record.Value, &t)
	}
	if err != nil {
		w.T.Fatal(err)
	}
	return t
}

// Shows waits and then compares all objects, except Events and the default objects of namespaces,
// with want. Each line is an object, with its finalizers in brackets, "going" if it is being
// deleted, and the names of its owners after an arrow.
func (w *World) Shows(want string) {
	w.T.Helper()
	w.Wait()
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if got := w.dump(); got != want {
		w.T.Fatalf("there is\n%s\n\nwant\n%s", got, want)
	}
}

func (w *World) dump() string {
	var lines []string
	for kind, d := range w.Kinds {
		page, err := w.Backend.List(w.Ctx, kv.Range{Prefix: d.StoragePrefix})
		if err != nil {
			w.T.Fatal(err)
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
	if kind == "event" || strings.HasSuffix(name, "/default") || strings.HasSuffix(name, "/kube-root-ca.crt") || kind+name == "namespacedev" && !strings.Contains(string(r.Value), "deletionTimestamp") {
		return ""
	}
	line := kind + " " + name
	h, err := controller.ReadHeader(r.Key, r.Value, r.Revision)
	if err != nil {
		return line + " unreadable"
	}
	if len(h.Finalizers) > 0 {
		line += fmt.Sprint(" ", h.Finalizers)
	}
	if h.Deleting {
		line += " going"
	}
	for _, o := range h.Owners {
		line += " <- " + o.Name
		if o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion {
			line += "!"
		}
	}
	return line
}
