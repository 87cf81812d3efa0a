package clients

import (
	"context"
	"fmt"
	"net/url"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/anykind/anykind"
)

// reported returns a channel that is closed once an informer has reported an object in the expected
// state.
func reported(t *testing.T, informer cache.SharedIndexInformer, done func(obj any) bool) <-chan struct{} {
	t.Helper()
	ch := make(chan struct{})
	end := sync.OnceFunc(func() { close(ch) })
	look := func(obj any) {
		if done(obj) {
			end()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return ch
}

func wait(ctx context.Context, t *testing.T, ch <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-ctx.Done():
		t.Fatalf("%s did not happen", what)
	}
}

// Informers have the stored objects, whether created before them, during their watch, or changed while
// the server was down.
func TestInformers(t *testing.T) {
	dir := t.TempDir()
	server, config := start(t, dir, "")
	ctx := within(t)
	define(ctx, t, config)
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	in, maps := dyn.Resource(gadgets).Namespace("default"), typed.CoreV1().ConfigMaps("default")
	makeBoth(ctx, t, in, typed, "before")

	customs := dynamicinformer.NewDynamicSharedInformerFactory(dyn, 0)
	builtins := informers.NewSharedInformerFactory(typed, 0)
	custom, builtin := customs.ForResource(gadgets).Informer(), builtins.Core().V1().ConfigMaps().Informer()
	stop, cancel := context.WithCancel(ctx)
	defer customs.Shutdown()
	defer builtins.Shutdown()
	defer cancel()
	during := reported(t, custom, func(obj any) bool { return obj.(*unstructured.Unstructured).GetName() == "during" })
	after := reported(t, custom, func(obj any) bool { return obj.(*unstructured.Unstructured).GetName() == "after" })
	afterMap := reported(t, builtin, func(obj any) bool { return obj.(*corev1.ConfigMap).Name == "after" })
	customs.Start(stop.Done())
	builtins.Start(stop.Done())
	if !cache.WaitForCacheSync(ctx.Done(), custom.HasSynced, builtin.HasSynced) {
		t.Fatal("the informers did not begin")
	}
	makeBoth(ctx, t, in, typed, "during")
	wait(ctx, t, during, "an event")

	restart(t, server, dir, config)
	if err := in.Delete(ctx, "before", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	makeBoth(ctx, t, in, typed, "after")
	wait(ctx, t, after, "an event after the restart")
	wait(ctx, t, afterMap, "an event after the restart")

	list, err := in.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]string{}
	for _, item := range list.Items {
		stored[item.GetNamespace()+"/"+item.GetName()] = text(item.Object)
	}
	if have := custom.GetStore().ListKeys(); len(have) != len(stored) {
		t.Errorf("the informer has %v, stored is %v", have, stored)
	}
	for key, want := range stored {
		obj, exists, err := custom.GetStore().GetByKey(key)
		if err != nil || !exists || text(obj.(*unstructured.Unstructured).Object) != want {
			t.Errorf("the informer has %s, stored is %s", text(obj), want)
		}
	}
	if _, err := maps.Get(ctx, "after", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

// restart stops the server and starts another one at its address.
func restart(t *testing.T, server *anykind.Server, dir string, config *rest.Config) {
	t.Helper()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	start(t, dir, at.Host)
}

func makeBoth(ctx context.Context, t *testing.T, in dynamic.ResourceInterface, typed kubernetes.Interface, name string) {
	t.Helper()
	if _, err := in.Create(ctx, gadget(name, 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := typed.CoreV1().ConfigMaps("default").Create(ctx, m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// An informer has all objects in each encoding of the typed clients.
func TestTypedInformers(t *testing.T) { eachEncoding(t, testTypedInformers) }

func testTypedInformers(t *testing.T, client kubernetes.Interface) {
	ctx := within(t)
	const many = 50
	for i := range many {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i)}, Data: map[string][]byte{"i": {byte(i)}}}
		if _, err := client.CoreV1().Secrets("default").Create(ctx, s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Core().V1().Secrets().Informer()
	changed := reported(t, informer, func(obj any) bool { return string(obj.(*corev1.Secret).Data["i"]) == "changed" })
	stop, cancel := context.WithCancel(ctx)
	defer factory.Shutdown()
	defer cancel()
	factory.Start(stop.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.Fatal("the informer did not begin")
	}
	if n := len(informer.GetStore().ListKeys()); n != many {
		t.Errorf("the informer has %d objects", n)
	}
	s, err := client.CoreV1().Secrets("default").Get(ctx, "s7", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.Data["i"] = []byte("changed")
	if _, err := client.CoreV1().Secrets("default").Update(ctx, s, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	wait(ctx, t, changed, "the change")
}
