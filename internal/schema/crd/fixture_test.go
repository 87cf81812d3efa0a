package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/definition"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/schema/crd/crdtest"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// server is everything below the REST layer, over a store in memory, with the
// controller that finalizes definitions.
type server struct {
	testing.TB
	store     kv.Backend
	cache     *watchcache.Cache
	catalog   *resource.Catalog
	objects   *registry.Registry
	registrar *crd.Registrar
	log       *strings.Builder
	stop      func()
}

// start runs a server over an empty store until the end of the test.
func start(t testing.TB) *server {
	store := memkv.New(memkv.Options{})
	t.Cleanup(func() { store.Close() })
	return startOver(t, store)
}

// startOver runs a server over a store that exists.
func startOver(t testing.TB, store kv.Backend) *server {
	t.Helper()
	return startWith(t, store, crd.Options{})
}

// startWith runs a server whose registrar has other options, too.
func startWith(t testing.TB, store kv.Backend, o crd.Options) *server {
	t.Helper()
	s := &server{TB: t, store: store, catalog: &resource.Catalog{}, log: &strings.Builder{}}
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	s.cache = watchcache.New(store, watchcache.Options{Logger: quiet})
	s.objects = registry.New(store, s.cache, registry.Options{
		Logger: quiet,
		Source: func(d *resource.Definition) (kv.Guard, bool) { return s.registrar.Source(d) },
	})
	o.Cache, o.Catalog, o.Objects = s.cache, s.catalog, s.objects
	o.Logger = slog.New(slog.NewTextHandler(s.log, nil))
	s.registrar = crd.New(o)
	ctx, cancel := context.WithCancel(context.Background())
	engine := controller.New(controller.Options{
		Objects: controller.Objects{Backend: store, Catalog: s.catalog, Registry: s.objects, Refresh: s.registrar.Fresh, Logger: quiet},
		Follow:  s.cache.Follow, Controllers: []controller.Descriptor{{Name: definition.Name, New: definition.New}},
	})
	done := make(chan struct{}, 3)
	go func() { s.cache.Run(ctx); done <- struct{}{} }()
	go func() { s.registrar.Run(ctx); done <- struct{}{} }()
	go func() { engine.Run(ctx); done <- struct{}{} }()
	s.stop = func() {
		cancel()
		<-done
		<-done
		<-done
		s.stop = func() {}
	}
	t.Cleanup(func() { s.stop() })
	s.fresh()
	return s
}

func (s *server) fresh() {
	s.Helper()
	if err := s.registrar.Fresh(s.ctx()); err != nil {
		s.Fatal(err)
	}
}

func (s *server) ctx() context.Context { return context.Background() }

// target names an object of a resource that is served.
func (s *server) target(group, plural, namespace, name string) registry.Target {
	s.Helper()
	d := s.catalog.Set().Lookup(group, plural)
	if d == nil {
		s.Fatalf("%s.%s is not served", plural, group)
	}
	return registry.StorageTarget(d, namespace, name)
}

func (s *server) crds(name string) registry.Target {
	return registry.StorageTarget(s.registrar.Definition(), "", name)
}

// try creates an object written in YAML.
func (s *server) try(target registry.Target, text string) (object.Tree, error) {
	s.Helper()
	return s.create(target, tree(s, text))
}

func (s *server) create(target registry.Target, sent object.Tree) (object.Tree, error) {
	t, _, err := target.Version.Schema.Complete(sent)
	if err != nil {
		return nil, err
	}
	target.Namespace, target.Name = object.Namespace(t), object.Name(t)
	result, err := s.objects.Create(s.ctx(), target, registry.Given(t), registry.WriteOptions{})
	return result.Tree, err
}

// define creates a CustomResourceDefinition and returns the response.
func (s *server) define(text string) *v1.CustomResourceDefinition {
	s.Helper()
	t, err := s.try(s.crds(""), text)
	if err != nil {
		s.Fatal(err)
	}
	return typed(s, t)
}

// change changes the CustomResourceDefinition of a name.
func (s *server) change(name, subresource string, change func(crd *v1.CustomResourceDefinition)) (*v1.CustomResourceDefinition, error) {
	s.Helper()
	target := s.crds(name)
	target.Subresource = subresource
	result, err := s.objects.Modify(s.ctx(), target, func(old object.Tree) (object.Tree, error) {
		c := typed(s, old)
		change(c)
		data, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		return data, err
	}, registry.WriteOptions{})
	if err != nil {
		return nil, err
	}
	return typed(s, result.Tree), nil
}

// stored returns the CustomResourceDefinition of a name, or nil.
func (s *server) stored(name string) *v1.CustomResourceDefinition {
	s.Helper()
	s.fresh()
	o, err := s.cache.Resource(crd.Prefix).Get(s.ctx(), crd.Prefix+name)
	if err != nil {
		s.Fatal(err)
	}
	if o == nil {
		return nil
	}
	data, err := o.JSON()
	if err != nil {
		s.Fatal(err)
	}
	return typed(s, tree(s, string(data)))
}

func (s *server) delete(target registry.Target) {
	s.Helper()
	if _, err := s.objects.Delete(s.ctx(), target, &metav1.DeleteOptions{}, registry.WriteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// eventually waits until the stored CustomResourceDefinition of a name has the expected state. It is
// nil if missing.
func (s *server) eventually(name, what string, is func(*v1.CustomResourceDefinition) bool) {
	s.Helper()
	watcher, err := s.cache.Resource(crd.Prefix).Watch(s.ctx(), crd.Prefix+name, s.cache.Revision())
	if err != nil {
		s.Fatal(err)
	}
	for !is(s.stored(name)) {
		if _, err := watcher.Next(s.Context()); err != nil {
			s.Fatalf("%s: %v; it is %s", what, err, summary(s.stored(name)))
		}
	}
	s.fresh()
}

func gone(c *v1.CustomResourceDefinition) bool { return c == nil }

func tree(t testing.TB, text string) object.Tree {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := object.Tree{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func typed(t testing.TB, in object.Tree) *v1.CustomResourceDefinition {
	t.Helper()
	c := &v1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in, c); err != nil {
		t.Fatal(err)
	}
	return c
}

// summary returns the status of a CustomResourceDefinition as text.
func summary(c *v1.CustomResourceDefinition) string {
	if c == nil {
		return "gone"
	}
	var b strings.Builder
	n := c.Status.AcceptedNames
	fmt.Fprintf(&b, "%s %s %s %s %v", n.Plural, n.Singular, n.Kind, n.ListKind, n.ShortNames)
	for _, cond := range c.Status.Conditions {
		fmt.Fprintf(&b, "\n%s=%s %s: %s", cond.Type, cond.Status, cond.Reason, cond.Message)
	}
	return b.String()
}

// widgets is a CustomResourceDefinition with every name of its own.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget, shortNames: [wd]}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}}}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
    subresources: {status: {}}
`

// gadgets wants the short name of widgets.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: gadgets, kind: Gadget, shortNames: [wd]}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

const widget = `
apiVersion: example.com/v1
kind: Widget
metadata: {name: one, namespace: default}
spec: {size: 3, colour: red}
`

// provider returns the definitions of a provider, as JSON.
func provider(t testing.TB) []string {
	t.Helper()
	var out []string
	for _, definition := range crdtest.Provider() {
		data, err := json.Marshal(definition)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	return out
}
