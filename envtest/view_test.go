package envtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A program with a stale view reads an earlier state, and sees the events since then when the fault ends.
func TestStaleView(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	config := e.StartFor(t)
	c, ctx := clientOf(t, config), t.Context()
	object := configMap("changed")
	object.Data = map[string]string{"a": "before"}
	if err := c.Create(ctx, object); err != nil {
		t.Fatal(err)
	}
	before := object.ResourceVersion
	object.Data["a"] = "after"
	if err := c.Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, configMap("later")); err != nil {
		t.Fatal(err)
	}
	jane, err := e.AddUser(User{Name: "jane", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reads := e.Inject(Fault{Requests: Requests{User: "jane", Verb: "read", Resource: "configmaps"}, Times: Always, Effect: StaleView(before)})
	var got corev1.ConfigMap
	janes := clientOf(t, jane.Config())
	if err := janes.Get(ctx, client.ObjectKeyFromObject(object), &got); err != nil || got.Data["a"] != "before" {
		t.Errorf("get: %v, %v", got.Data, err)
	}
	if err := janes.Get(ctx, client.ObjectKey{Namespace: "default", Name: "later"}, &got); !apierrors.IsNotFound(err) {
		t.Errorf("get of a later object: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(object), &got); err != nil || got.Data["a"] != "after" {
		t.Errorf("another user: %v, %v", got.Data, err)
	}

	// A cache that starts now has the old state, until the fault is removed.
	clients, err := kubernetes.NewForConfig(jane.Config())
	if err != nil {
		t.Fatal(err)
	}
	values := make(chan string, 10)
	factory := informers.NewSharedInformerFactoryWithOptions(clients, 0, informers.WithNamespace("default"))
	informer := factory.Core().V1().ConfigMaps().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { values <- o.(*corev1.ConfigMap).Name + " " + o.(*corev1.ConfigMap).Data["a"] },
		UpdateFunc: func(_, o any) { values <- o.(*corev1.ConfigMap).Name + " " + o.(*corev1.ConfigMap).Data["a"] },
	}); err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(ctx)
	factory.Start(running.Done())
	defer factory.Shutdown()
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the cache is not filled")
	}
	if got := <-values; got != "changed before" || len(values) > 0 {
		t.Errorf("the cache has %q and %d others", got, len(values))
	}
	reads.Remove()
	for _, want := range []string{"changed after", "later "} {
		if got := <-values; got != want {
			t.Errorf("then it has %q, want %q", got, want)
		}
	}
}

// The order in which events of two kinds are released is the one in which a program sees them.
func TestHoldEvents(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	config := e.StartFor(t)
	c, ctx := clientOf(t, config), t.Context()
	watching, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string, 10)
	holds := map[string]*Injected{}
	for resource, list := range map[string]client.ObjectList{"configmaps": &corev1.ConfigMapList{}, "secrets": &corev1.SecretList{}} {
		holds[resource] = e.Inject(Fault{Requests: Requests{Verb: "watch", Resource: resource}, Effect: HoldEvents()})
		w, err := watching.Watch(ctx, list, client.InNamespace("default"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		go func() {
			for event := range w.ResultChan() {
				if o, ok := event.Object.(client.Object); ok {
					seen <- resource + " " + o.GetName()
				}
			}
		}()
	}
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = "default", "first"
	if err := c.Create(ctx, secret); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(ctx, configMap("second")); err != nil {
		t.Fatal(err)
	}
	for _, resource := range []string{"configmaps", "secrets"} {
		if len(seen) > 0 {
			t.Errorf("%q was not held back", <-seen)
		}
		holds[resource].Remove()
		want := map[string]string{"configmaps": "configmaps second", "secrets": "secrets first"}[resource]
		if got := <-seen; got != want {
			t.Errorf("saw %q, want %q", got, want)
		}
	}
}

// Events are held for longer than the server waits for a client that does not read.
func TestHoldEventsForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &Environment{InMemory: true}
		config := e.StartFor(t)
		c, err := client.NewWithWatch(config, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		hold := e.Inject(Fault{Requests: Requests{Verb: "watch", Resource: "configmaps"}, Times: Always, Effect: HoldEvents()})
		w, err := c.Watch(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("default"))
		if err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
		if err := c.Create(t.Context(), configMap("held")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		select {
		case event := <-w.ResultChan():
			t.Errorf("it was not held: %v", event)
		default:
		}
		hold.Remove()
		for event := range w.ResultChan() {
			if o, ok := event.Object.(client.Object); ok && o.GetName() == "held" {
				return
			}
		}
		t.Error("the watch has ended without the event")
	})
}

// The nth write takes effect, its program is stopped, and gets no answer.
func TestCrashAfter(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	c := clientOf(t, e.StartFor(t))
	running, crash := context.WithCancel(t.Context())
	fault := e.CrashAfter(2, Requests{Verb: "create", Resource: "configmaps"}, crash)
	if err := c.Create(t.Context(), configMap("one")); err != nil || running.Err() != nil {
		t.Fatalf("the first one: %v, %v", err, running.Err())
	}
	if err := c.Create(t.Context(), configMap("two")); err == nil || running.Err() == nil {
		t.Errorf("the second one: %v, %v", err, running.Err())
	}
	var all corev1.ConfigMapList
	if err := c.List(t.Context(), &all, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, o := range all.Items {
		names[o.Name] = true
	}
	if !names["one"] || !names["two"] || fault.Count() != 1 {
		t.Errorf("there are %v, after %d crashes", names, fault.Count())
	}
}
