package etcd

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/store/etcdkv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var (
	crds       = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
)

// childVariable makes the test binary a server. Its value is the URL of the etcd.
const childVariable = "ANYKIND_TEST_ETCD"

func TestMain(m *testing.M) {
	if url := os.Getenv(childVariable); url != "" {
		if _, err := app.Start(context.Background(), options(url)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		select {}
	}
	if description := os.Getenv(memberVariable); description != "" {
		fmt.Fprintln(os.Stderr, be(description))
		os.Exit(1)
	}
	flag.Parse()
	os.Exit(m.Run())
}

func options(url string) app.Options {
	return app.Options{Etcd: app.Etcd{Servers: []string{url}, CompactionInterval: app.History}}
}

// serve starts a server over an etcd, and returns a client of it.
func serve(t *testing.T, url string) dynamic.Interface {
	t.Helper()
	return serveWith(t, options(url))
}

func serveWith(t *testing.T, o app.Options) dynamic.Interface {
	t.Helper()
	return clientOf(t, administrator(t, o))
}

// administrator starts a server, and returns the client configuration of its administrator.
func administrator(t *testing.T, o app.Options) *rest.Config {
	t.Helper()
	a, err := app.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := a.Stop(ctx); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	config, err := clientcmd.RESTConfigFromKubeConfig(a.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	return config
}

func clientOf(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// definition returns a CustomResourceDefinition of a unique kind.
func definition(i int) (*unstructured.Unstructured, schema.GroupVersionResource) {
	plural := fmt.Sprintf("widget%ds", i)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": plural, "kind": fmt.Sprintf("Widget%d", i)},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}, schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: plural}
}

func object(apiVersion, kind, name, value string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name},
		"data": map[string]any{"value": value},
	}}
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestADefinitionIsServedByAllServersAtOnce(t *testing.T) {
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url)}
	ctx := t.Context()
	got := must[*unstructured.Unstructured](t)
	for i := range 20 {
		here, there := servers[i%2], servers[(i+1)%2]
		crd, resource := definition(i)
		got(here.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}))
		got(there.Resource(resource).Namespace("default").Create(ctx,
			object("example.com/v1", fmt.Sprintf("Widget%d", i), "w", "1"), metav1.CreateOptions{}))
		got(here.Resource(resource).Namespace("default").Get(ctx, "w", metav1.GetOptions{}))
	}
}

// Any server can delete a definition together with its objects. A definition of the same name that is
// created through another server starts empty.
func TestADefinitionGoesWithItsObjects(t *testing.T) {
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url), serve(t, url)}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got := must[*unstructured.Unstructured](t)
	for i := range servers {
		here, there := servers[i], servers[(i+1)%3]
		crd, resource := definition(0)
		got(here.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}))
		for n := range 30 {
			got(there.Resource(resource).Namespace("default").Create(ctx,
				object("example.com/v1", "Widget0", fmt.Sprint("w", n), "1"), metav1.CreateOptions{}))
		}
		gone, err := there.Resource(crds).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + crd.GetName()})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := here.Resource(crds).Delete(ctx, crd.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for e := range gone.ResultChan() {
			if e.Type == watch.Deleted {
				break
			}
		}
		gone.Stop()
		if ctx.Err() != nil {
			t.Fatal("the definition did not go")
		}
		t.Logf("it was gone after %v", time.Since(began))
		got(there.Resource(crds).Create(ctx, crd, metav1.CreateOptions{}))
		list := must[*unstructured.UnstructuredList](t)(here.Resource(resource).List(ctx, metav1.ListOptions{}))
		if len(list.Items) > 0 {
			t.Fatalf("%d objects are left", len(list.Items))
		}
		if err := here.Resource(crds).Delete(ctx, crd.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		for err == nil {
			_, err = there.Resource(crds).Get(ctx, crd.GetName(), metav1.GetOptions{})
		}
	}
}

func TestAWriteIsInTheNextReadThroughAnotherServer(t *testing.T) {
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url)}
	ctx := t.Context()
	for i := range 50 {
		here, there := servers[i%2].Resource(configMaps).Namespace("default"), servers[(i+1)%2].Resource(configMaps).Namespace("default")
		name := fmt.Sprintf("c%d", i)
		written := must[*unstructured.Unstructured](t)(here.Create(ctx, object("v1", "ConfigMap", name, "1"), metav1.CreateOptions{}))
		list := must[*unstructured.UnstructuredList](t)(there.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name}))
		if len(list.Items) != 1 || list.Items[0].GetResourceVersion() != written.GetResourceVersion() {
			t.Fatalf("%s was not in the next list through another server: %v", name, list.Items)
		}
		if err := there.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Get(ctx, name, metav1.GetOptions{}); err == nil {
			t.Fatalf("%s was there after it was deleted through another server", name)
		}
	}
}

func TestAWatchGoesOnThroughAnotherServer(t *testing.T) {
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url)}
	ctx := t.Context()
	const writes = 30
	version := must[*unstructured.UnstructuredList](t)(servers[0].Resource(configMaps).Namespace("default").
		List(ctx, metav1.ListOptions{})).GetResourceVersion()
	for i := range writes {
		must[*unstructured.Unstructured](t)(servers[i%2].Resource(configMaps).Namespace("default").
			Create(ctx, object("v1", "ConfigMap", fmt.Sprintf("w%02d", i), "1"), metav1.CreateOptions{}))
	}
	for i := 0; i < writes; {
		w, err := servers[i%2].Resource(configMaps).Namespace("default").Watch(ctx, metav1.ListOptions{ResourceVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; n < 7 && i < writes; {
			e := <-w.ResultChan()
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				t.Fatalf("after %d events: %+v", i, e)
			}
			version = o.GetResourceVersion()
			if o.GetName() == "kube-root-ca.crt" {
				continue
			}
			if want := fmt.Sprintf("w%02d", i); o.GetName() != want {
				t.Fatalf("got an event of %s, want %s", o.GetName(), want)
			}
			i++
			n++
		}
		w.Stop()
	}
}

func TestTheWorkOfAKilledServerIsTakenOver(t *testing.T) {
	url := Start(t)
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+url)
	child.Stderr = t.Output()
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The child leads the controllers before there is another server.
	store, err := etcdkv.Open(etcdkv.Options{Endpoints: []string{url}, Root: "/registry/", Prefix: "/registry/"})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for batch, err := range store.Watch(ctx, "/registry/leases/kube-system/anykind-lifecycle", 1) {
		if err != nil {
			t.Fatal(err)
		}
		if len(batch.Events) > 0 {
			break
		}
	}
	client := serve(t, url)
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	// A namespace disappears only if a namespace controller runs.
	must[*unstructured.Unstructured](t)(client.Resource(namespaces).Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "dev"},
	}}, metav1.CreateOptions{}))
	gone, err := client.Resource(namespaces).Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=dev"})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Stop()
	if err := client.Resource(namespaces).Delete(ctx, "dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for e := range gone.ResultChan() {
		if e.Type == watch.Deleted {
			break
		}
	}
	if ctx.Err() != nil {
		t.Fatal("no server became the leader")
	}
	t.Logf("the namespace was gone %v after the kill", time.Since(killed))
}
