package envtest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each change is observed once, with the states around it, before the response to its request.
func TestObserve(t *testing.T) {
	te := &Environment{}
	config := te.StartFor(t)
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var seen []string
	stop := te.Observe(func(change Change) {
		mu.Lock()
		defer mu.Unlock()
		of := change.After
		if of == nil {
			of = change.Before
		}
		if of.GetName() != "m" {
			return
		}
		seen = append(seen, fmt.Sprint(change.User, " ", change.Verb, " ", change))
	})
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "m"}, Data: map[string]string{"a": "1"}}
	steps := []func() error{
		func() error { return c.Create(t.Context(), m) },
		func() error { m.Data["a"] = "2"; return c.Update(t.Context(), m) },
		func() error { return c.Update(t.Context(), m) }, // changes nothing
		func() error { return c.Delete(t.Context(), m) },
	}
	for i, want := range []string{
		"admin create ConfigMap default/m created", `admin update ConfigMap default/m: data.a="2"`, "", "admin delete ConfigMap default/m deleted",
	} {
		seen = nil
		if err := steps[i](); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(seen, "; "); got != want {
			t.Errorf("step %d: %q, want %q", i, got, want)
		}
	}
	stop()
	seen = nil
	m.ResourceVersion, m.UID = "", ""
	if err := c.Create(t.Context(), m); err != nil || len(seen) > 0 {
		t.Errorf("after the end: %q, %v", seen, err)
	}
	all, err := te.Objects(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(u *unstructured.Unstructured) bool { return u.GetKind() == "ConfigMap" && u.GetName() == "m" })
	if i < 0 || all[i].GetResourceVersion() != m.ResourceVersion {
		t.Errorf("the ConfigMap is not in %d objects, or not with resourceVersion %s", len(all), m.ResourceVersion)
	}
}
