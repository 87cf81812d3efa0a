package namespace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/controller/garbage"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

type world struct{ *controllertest.World }

func in(t *testing.T, test func(w *world)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}, {Name: garbage.Name, New: garbage.New}}, func(w *controllertest.World) { test(&world{w}) })
}

// A namespace is deleted with everything in it, and with nothing else.
func TestNamespace(t *testing.T) {
	in(t, func(w *world) {
		w.Create("namespace ops")
		for _, n := range []string{"dev", "ops"} {
			w.Create("lead " + n + "/a")
			w.Create("configmap " + n + "/a")
			w.Create("secret " + n + "/a")
			w.Create("lease " + n + "/a")
			w.Create("event "+n+"/a", about(n))
		}
		w.Create("hub h")
		w.Delete("namespace dev", "")
		w.Shows(`
			configmap ops/a
			hub h
			lead ops/a
			lease ops/a
			namespace ops
			secret ops/a`)
		w.empty("dev")
		if w.Get("namespace dev") != nil {
			t.Error("the namespace is still there")
		}
	})
}

func about(namespace string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) {
		t["involvedObject"] = object.Tree{"namespace": namespace}
	}
}

// empty checks that no key of a namespace remains.
func (w *world) empty(namespace string) {
	w.T.Helper()
	page, err := w.Backend.List(w.Ctx, kv.Range{})
	if err != nil {
		w.T.Fatal(err)
	}
	for _, r := range page.Records {
		if strings.Contains(r.Key, "/"+namespace+"/") {
			w.T.Errorf("%s is left", r.Key)
		}
	}
}

// Objects with finalizers hold the namespace. Its status lists the finalizers.
func TestNamespaceWithFinalizers(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/a", controllertest.Finalizer("test.example.com/f", "test.example.com/g"))
		w.Create("lead dev/b", controllertest.Finalizer("test.example.com/f"))
		w.Create("configmap dev/c", controllertest.Finalizer("test.example.com/f"))
		w.Create("configmap dev/d")
		w.Delete("namespace dev", "")
		w.Shows(`
			configmap dev/c [test.example.com/f] going
			lead dev/a [test.example.com/f test.example.com/g] going
			lead dev/b [test.example.com/f] going
			namespace dev going`)
		w.conditions("dev", `
			NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
			NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
			NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization
			NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances, leads.test.example.com has 2 resource instances
			NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: test.example.com/f in 3 resource instances, test.example.com/g in 1 resource instances`)
		err := w.TryCreate("lead dev/late")
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("creating in it gives %v", err)
		}

		w.Release("lead dev/b")
		w.Release("configmap dev/c")
		w.Sleep(recountPause)
		w.Shows(`
			lead dev/a [test.example.com/f test.example.com/g] going
			namespace dev going`)
		w.conditions("dev", `
			NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
			NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
			NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization
			NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: leads.test.example.com has 1 resource instances
			NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: test.example.com/f in 1 resource instances, test.example.com/g in 1 resource instances`)

		w.Release("lead dev/a")
		w.Shows(``)
		if w.Get("namespace dev") != nil {
			t.Error("the namespace is still there")
		}
	})
}

// conditions compares the conditions of a namespace.
func (w *world) conditions(name, want string) {
	w.T.Helper()
	data, _ := json.Marshal(w.Get("namespace " + name))
	var n corev1.Namespace
	if err := json.Unmarshal(data, &n); err != nil {
		w.T.Fatal(err)
	}
	var got []string
	for _, c := range n.Status.Conditions {
		got = append(got, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		if c.LastTransitionTime.IsZero() {
			w.T.Errorf("%s has no time", c.Type)
		}
	}
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if g := strings.Join(got, "\n"); g != want {
		w.T.Fatalf("conditions\n%s\n\nwant\n%s", g, want)
	}
}

// A namespace with other finalizers stays, empty.
func TestNamespaceOtherFinalizers(t *testing.T) {
	in(t, func(w *world) {
		w.Create("namespace ops", controllertest.Finalizer("test.example.com/f"), func(_ *controllertest.World, t object.Tree) {
			t["spec"] = object.Tree{"finalizers": []any{"test.example.com/spec"}}
		})
		w.Create("lead ops/a")
		w.Delete("namespace ops", "")
		w.Shows(`namespace ops [test.example.com/f] going`)
		w.empty("ops")
		spec, _ := w.Get("namespace ops")["spec"].(object.Tree)
		if got := fmt.Sprint(spec["finalizers"]); got != "[test.example.com/spec]" {
			t.Errorf("spec.finalizers is %s", got)
		}
	})
}

// Objects of an unserved kind are deleted, too. A kind that cannot be deleted does not affect the
// others.
func TestNamespaceStrangeKinds(t *testing.T) {
	in(t, func(w *world) {
		hidden, broken := controllertest.Custom("Hidden", true), controllertest.Custom("Broken", true)
		hidden.Versions[0].Served = false
		var up atomic.Bool
		broken.CompleteSince = 1 << 40
		broken.Convert = func(_ context.Context, objs []map[string]any, _ string) ([]map[string]any, error) {
			if !up.Load() {
				return nil, errors.New("the webhook is down")
			}
			return objs, nil
		}
		w.Kinds["hidden"], w.Kinds["broken"] = hidden, broken
		w.Catalog.Swap(w.Catalog.Set().With(nil, []*resource.Definition{hidden, broken}))
		w.Create("hidden dev/a")
		w.Create("broken dev/b")
		// It is stored in a version that needs a conversion.
		record, _ := w.Backend.Get(w.Ctx, w.Key("broken dev/b"), kv.Latest)
		old := strings.Replace(string(record.Value), "test.example.com/v1", "test.example.com/v0", 1)
		w.put(w.Key("broken dev/b"), old, record.Revision)
		w.put(w.Key("lead dev/half"), `{"metadata":{"name":"half"},"spec":{"a":x}}`, 0)

		w.Delete("namespace dev", "")
		w.Shows(`
			broken dev/b
			namespace dev going`)
		w.conditions("dev", `
			NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
			NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
			NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: Internal error occurred: the webhook is down
			NamespaceContentRemaining False ContentRemoved: All content successfully removed
			NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished`)
		up.Store(true)
		w.Sleep(controller.LongestRetry)
		w.Shows(``)
	})
}

// An object that cannot be decoded keeps its namespace until it is removed: its finalizers are not known.
func TestNamespaceWithCorruptObject(t *testing.T) {
	in(t, func(w *world) {
		key := w.Key("lead dev/garbage")
		w.put(key, `{"metadata":`, 0)
		w.Delete("namespace dev", "")
		w.Shows(`
			lead dev/garbage unreadable
			namespace dev going`)
		record, err := w.Backend.Get(w.Ctx, key, kv.Latest)
		if err == nil {
			_, err = w.Backend.Commit(w.Ctx, kv.Write{Key: key, Expect: record.Revision})
		}
		if err != nil {
			w.T.Fatal(err)
		}
		w.Sleep(controller.LongestRetry)
		w.Shows(``)
	})
}

func (w *world) put(key, value string, revision int64) {
	w.T.Helper()
	if _, err := w.Backend.Commit(w.Ctx, kv.Write{Key: key, Value: []byte(value), Expect: revision}); err != nil {
		w.T.Fatal(err)
	}
}

// Many objects that are deleted one by one do not each cause a recount.
func TestNamespaceLooksSeldom(t *testing.T) {
	in(t, func(w *world) {
		const n = 50
		for i := range n {
			w.Create(fmt.Sprint("lead dev/", i), controllertest.Finalizer("test.example.com/f"))
		}
		w.Delete("namespace dev", "")
		w.Wait()
		var looks atomic.Int32
		w.Refresh = func() { looks.Add(1) }
		for i := range n {
			w.Release(fmt.Sprint("lead dev/", i))
			w.Sleep(100 * time.Millisecond)
		}
		w.Shows(``)
		if n := looks.Load(); n > 5 {
			t.Errorf("objects that went in five seconds were looked at %d times", n)
		}
	})
}

// Another server finishes the deletion of a namespace.
func TestNamespaceRestart(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/a", controllertest.Finalizer("test.example.com/f"))
		w.Delete("namespace dev", metav1.DeletePropagationForeground)
		w.Wait()
		w.Stop()
		w.Release("lead dev/a")
		w.Create("namespace ops")
		w.Delete("namespace ops", "")
		w.Shows(`
			namespace dev going
			namespace ops going`)
		w.Start()
		w.Shows(``)
	})
}
