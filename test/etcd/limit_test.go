package etcd

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/kv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// longest has the longest possible names, for the key of an object and those of its guards.
type longest struct {
	client dynamic.ResourceInterface
	made   *unstructured.Unstructured // a small one
	around int                        // stored bytes of the object except x
}

func (l *longest) named(letter string, size int) *unstructured.Unstructured {
	o := l.made.DeepCopy()
	o.Object["metadata"] = map[string]any{"name": strings.Repeat(letter, 253)}
	o.Object["x"] = strings.Repeat("x", size)
	return o
}

func newLongest(t *testing.T, server dynamic.Interface) *longest {
	t.Helper()
	plural, group := strings.Repeat("p", 63), strings.Repeat("g", 63)+"."+strings.Repeat("g", 63)+"."+strings.Repeat("g", 61)
	must[*unstructured.Unstructured](t)(server.Resource(crds).Create(t.Context(), kindOf(plural, group, "Big"), metav1.CreateOptions{}))
	namespace := strings.Repeat("n", 63)
	must[*unstructured.Unstructured](t)(server.Resource(namespaces).Create(t.Context(), object("v1", "Namespace", namespace, ""), metav1.CreateOptions{}))
	l := &longest{
		client: server.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}).Namespace(namespace),
		made:   object(group+"/v1", "Big", "", ""),
	}
	delete(l.made.Object, "data")
	made := must[*unstructured.Unstructured](t)(l.client.Create(t.Context(), l.named("a", 0), metav1.CreateOptions{}))
	// An object without space for managedFields is stored without them.
	made.SetManagedFields(nil)
	made.SetResourceVersion("")
	data, err := json.Marshal(made.Object)
	if err != nil {
		t.Fatal(err)
	}
	l.around = len(data)
	return l
}

// etcd accepts every write that the server accepts, with the longest keys.
func TestEtcdTakesWhatTheServerTakes(t *testing.T) {
	l := newLongest(t, serve(t, Start(t)))
	must[*unstructured.Unstructured](t)(l.client.Create(t.Context(), l.named("b", kv.DefaultMaxValueBytes-l.around), metav1.CreateOptions{}))
	_, err := l.client.Create(t.Context(), l.named("c", kv.DefaultMaxValueBytes-l.around+1), metav1.CreateOptions{})
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "--max-object-bytes") {
		t.Errorf("one byte more: %v", err)
	}
}

// If the server's limit is above etcd's, etcd rejects the write.
func TestTheLimitOfEtcdIsLower(t *testing.T) {
	o := options(Start(t))
	o.MaxObjectBytes = 2 * kv.DefaultMaxValueBytes
	l := newLongest(t, serveWith(t, o))
	_, err := l.client.Create(t.Context(), l.named("b", kv.DefaultMaxValueBytes+20_000), metav1.CreateOptions{})
	if !apierrors.IsRequestEntityTooLargeError(err) || !strings.Contains(err.Error(), "--max-request-bytes") {
		t.Errorf("more than etcd takes: %v", err)
	}
	must[*unstructured.Unstructured](t)(l.client.Create(t.Context(), l.named("c", 1000), metav1.CreateOptions{}))
}
