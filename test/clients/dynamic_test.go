package clients

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/pager"
)

// A dynamic client works with a custom resource right after its definition, as a typed client does
// with a built-in one.
func TestDynamicClient(t *testing.T) {
	_, config := start(t, "", "")
	ctx := within(t)
	define(ctx, t, config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	all := client.Resource(gadgets)
	in := all.Namespace("default")
	w, err := all.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()

	made, err := in.Create(ctx, gadget("a", 1), metav1.CreateOptions{})
	if err != nil || made.GetGeneration() != 1 {
		t.Fatalf("made %s, %v", text(made), err)
	}
	unstructured.SetNestedField(made.Object, int64(7), "status", "size")
	reported, err := in.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	if err != nil || sizeIn("status", reported) != 7 || reported.GetGeneration() != 1 {
		t.Errorf("reported %s, %v", text(reported), err)
	}
	patched, err := in.Patch(ctx, "a", types.MergePatchType, []byte(`{"spec":{"size":2}}`), metav1.PatchOptions{})
	if err != nil || sizeIn("spec", patched) != 2 || patched.GetGeneration() != 2 {
		t.Errorf("patched %s, %v", text(patched), err)
	}
	applied, err := in.Apply(ctx, "b", gadget("b", 3), metav1.ApplyOptions{FieldManager: "test"})
	if err != nil || sizeIn("spec", applied) != 3 {
		t.Errorf("applied %s, %v", text(applied), err)
	}
	state := gadget("b", 0)
	state.Object["status"] = map[string]any{"size": int64(4)}
	delete(state.Object, "spec")
	if applied, err = in.ApplyStatus(ctx, "b", state, metav1.ApplyOptions{FieldManager: "test"}); err != nil || sizeIn("status", applied) != 4 {
		t.Errorf("applied to the status %s, %v", text(applied), err)
	}
	list, err := all.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 {
		t.Errorf("listed %s, %v", text(list), err)
	}
	if err := in.Delete(ctx, "a", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")}); !apierrors.IsConflict(err) {
		t.Errorf("deleting another one: %v", err)
	}
	if err := in.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Modified, watch.Added, watch.Modified, watch.Deleted} {
		if e := receive(ctx, t, w.ResultChan(), "an event"); e.Type != want {
			t.Errorf("event %s, want %s: %s", e.Type, want, text(e.Object))
		}
	}
}

// The pager lists in chunks, and the metadata client gets only metadata.
func TestPagerAndMetadata(t *testing.T) {
	_, config := start(t, "", "")
	ctx := within(t)
	define(ctx, t, config)
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	in := client.Resource(gadgets).Namespace("default")
	const many = 25
	for i := range many {
		if _, err := in.Create(ctx, gadget(fmt.Sprintf("g%02d", i), 1), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	parts := 0
	p := pager.New(func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		parts++
		return in.List(ctx, o)
	})
	p.PageSize = 10
	seen := 0
	if err := p.EachListItem(ctx, metav1.ListOptions{}, func(runtime.Object) error { seen++; return nil }); err != nil {
		t.Error(err)
	}
	if seen != many || parts != 3 {
		t.Errorf("%d objects in %d parts", seen, parts)
	}
	only, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	list, err := only.Resource(gadgets).Namespace("default").List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != many || list.Items[0].UID == "" {
		t.Errorf("metadata %s, %v", text(list), err)
	}
}

// The metadata client requests protobuf, for custom resources too: get, list and watch. Here it
// accepts nothing else.
func TestMetadataInProtobuf(t *testing.T) {
	_, config := start(t, "", "")
	ctx := within(t)
	define(ctx, t, config)
	in, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return onlyProtobuf{next} })
	only, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	factory := metadatainformer.NewSharedInformerFactory(only, 0)
	informer := factory.ForResource(gadgets).Informer()
	seen := reported(t, informer, func(obj any) bool {
		m, ok := obj.(*metav1.PartialObjectMetadata)
		return ok && m.Name == "late" && m.Labels["a"] == "b"
	})
	if _, err := in.Resource(gadgets).Namespace("default").Create(ctx, gadget("early", 1), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	made, err := in.Resource(gadgets).Namespace("default").Create(ctx, gadget("late", 1), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	objects := only.Resource(gadgets).Namespace("default")
	patched, err := objects.Patch(ctx, "late", types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
	if err != nil || patched.UID != made.GetUID() || patched.Labels["a"] != "b" {
		t.Errorf("patched %s, %v", text(patched), err)
	}
	wait(ctx, t, seen, "the patched object")
	got, err := objects.Get(ctx, "late", metav1.GetOptions{})
	if err != nil || text(got) != text(patched) {
		t.Errorf("got %s, %v", text(got), err)
	}
	if err := objects.Delete(ctx, "late", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := objects.Get(ctx, "late", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after its deletion: %v", err)
	}
}

// onlyProtobuf reduces the Accept header to its first type, protobuf. Deletes keep theirs: their
// response has no protobuf form.
type onlyProtobuf struct{ next http.RoundTripper }

func (o onlyProtobuf) RoundTrip(r *http.Request) (*http.Response, error) {
	first, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	if !strings.HasPrefix(first, runtime.ContentTypeProtobuf) {
		return nil, fmt.Errorf("%s %s takes %q", r.Method, r.URL, first)
	}
	if strings.Contains(first, "as=") {
		r = r.Clone(r.Context())
		r.Header.Set("Accept", first)
	} else if r.Method != http.MethodDelete {
		return nil, fmt.Errorf("%s %s takes %q", r.Method, r.URL, first)
	}
	return o.next.RoundTrip(r)
}

// Definitions are a built-in kind: their own client may use protobuf.
func TestDefinitionsInProtobuf(t *testing.T) {
	_, config := start(t, "", "")
	ctx := within(t)
	encodings()["protobuf"](config)
	client, err := apiextensions.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.ApiextensionsV1().CustomResourceDefinitions()
	w, err := definitions.Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	made, err := definitions.Create(ctx, gadgetDefinition(), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := text(gadgetDefinition().Spec.Versions)
	list, err := definitions.List(ctx, metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || text(list.Items[0].Spec.Versions) != want {
		t.Errorf("listed %s, %v, want %s", text(list), err, want)
	}
	seen, ok := receive(ctx, t, w.ResultChan(), "an event").Object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok || seen.UID != made.UID || text(seen.Spec) != text(made.Spec) {
		t.Errorf("saw %s, made %s", text(seen), text(made))
	}
}
