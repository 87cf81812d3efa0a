package lifecycle

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

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// A namespace goes with everything in it, and with nothing else.
func TestNamespace(t *testing.T) {
	in(t, func(w *world) {
		w.create("namespace ops")
		for _, n := range []string{"dev", "ops"} {
			w.create("lead " + n + "/a")
			w.create("configmap " + n + "/a")
			w.create("secret " + n + "/a")
			w.create("lease " + n + "/a")
			w.create("event "+n+"/a", about(n))
		}
		w.create("hub h")
		w.delete("namespace dev", "")
		w.shows(`
			configmap ops/a
			hub h
			lead ops/a
			lease ops/a
			namespace ops
			secret ops/a`)
		w.empty("dev")
		if w.get("namespace dev") != nil {
			t.Error("the namespace is still there")
		}
	})
}

func about(namespace string) feature {
	return func(_ *world, t object.Tree) { t["involvedObject"] = object.Tree{"namespace": namespace} }
}

// empty checks that no key is left of a namespace.
func (w *world) empty(namespace string) {
	w.t.Helper()
	page, err := w.backend.List(w.ctx, kv.Range{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range page.Records {
		if strings.Contains(r.Key, "/"+namespace+"/") {
			w.t.Errorf("%s is left", r.Key)
		}
	}
}

// Objects with finalizers hold the namespace, whose status says which.
func TestNamespaceWithFinalizers(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/a", finalizer("test.example.com/f", "test.example.com/g"))
		w.create("lead dev/b", finalizer("test.example.com/f"))
		w.create("configmap dev/c", finalizer("test.example.com/f"))
		w.create("configmap dev/d")
		w.delete("namespace dev", "")
		w.shows(`
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
		err := w.tryCreate("lead dev/late")
		if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			t.Errorf("creating in it gives %v", err)
		}

		w.release("lead dev/b")
		w.release("configmap dev/c")
		w.sleep(leftoverPause)
		w.shows(`
			lead dev/a [test.example.com/f test.example.com/g] going
			namespace dev going`)
		w.conditions("dev", `
			NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
			NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
			NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization
			NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: leads.test.example.com has 1 resource instances
			NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: test.example.com/f in 1 resource instances, test.example.com/g in 1 resource instances`)

		w.release("lead dev/a")
		w.shows(``)
		if w.get("namespace dev") != nil {
			t.Error("the namespace is still there")
		}
	})
}

// conditions checks the conditions of a namespace.
func (w *world) conditions(name, want string) {
	w.t.Helper()
	data, _ := json.Marshal(w.get("namespace " + name))
	var n corev1.Namespace
	if err := json.Unmarshal(data, &n); err != nil {
		w.t.Fatal(err)
	}
	var got []string
	for _, c := range n.Status.Conditions {
		got = append(got, fmt.Sprintf("%s %s %s: %s", c.Type, c.Status, c.Reason, c.Message))
		if c.LastTransitionTime.IsZero() {
			w.t.Errorf("%s has no time", c.Type)
		}
	}
	want = strings.TrimSpace(strings.ReplaceAll(want, "\t", ""))
	if g := strings.Join(got, "\n"); g != want {
		w.t.Fatalf("conditions\n%s\n\nwant\n%s", g, want)
	}
}

// A namespace that others finalize too stays for them, empty.
func TestNamespaceOtherFinalizers(t *testing.T) {
	in(t, func(w *world) {
		w.create("namespace ops", finalizer("test.example.com/f"), func(_ *world, t object.Tree) {
			t["spec"] = object.Tree{"finalizers": []any{"test.example.com/spec"}}
		})
		w.create("lead ops/a")
		w.delete("namespace ops", "")
		w.shows(`namespace ops [test.example.com/f] going`)
		w.empty("ops")
		spec, _ := w.get("namespace ops")["spec"].(object.Tree)
		if got := fmt.Sprint(spec["finalizers"]); got != "[test.example.com/spec]" {
			t.Errorf("spec.finalizers is %s", got)
		}
	})
}

// A kind that nobody serves is deleted too, and one whose objects cannot be
// deleted does not stop the others.
func TestNamespaceStrangeKinds(t *testing.T) {
	in(t, func(w *world) {
		hidden, broken := custom("Hidden", true), custom("Broken", true)
		hidden.Versions[0].Served = false
		var up atomic.Bool
		broken.Since = 1 << 40
		broken.Convert = func(_ context.Context, objs []map[string]any, _ string) ([]map[string]any, error) {
			if !up.Load() {
				return nil, errors.New("the webhook is down")
			}
			return objs, nil
		}
		w.kinds["hidden"], w.kinds["broken"] = hidden, broken
		w.catalog.Swap(w.catalog.Set().With(nil, []*resource.Definition{hidden, broken}))
		w.create("hidden dev/a")
		w.create("broken dev/b")
		// It was stored in a version that must be converted.
		record, _ := w.backend.Get(w.ctx, w.key("broken dev/b"), kv.Latest)
		old := strings.Replace(string(record.Value), "test.example.com/v1", "test.example.com/v0", 1)
		w.put(w.key("broken dev/b"), old, record.Revision)
		w.put(w.key("lead dev/garbage"), `{"metadata":`, 0)
		w.put(w.key("lead dev/half"), `{"metadata":{"name":"half"},"spec":{"a":x}}`, 0)

		w.delete("namespace dev", "")
		w.shows(`
			broken dev/b
			namespace dev going`)
		w.conditions("dev", `
			NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
			NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
			NamespaceDeletionContentFailure True ContentDeletionFailed: Failed to delete all resource types, 1 remaining: Internal error occurred: the webhook is down
			NamespaceContentRemaining False ContentRemoved: All content successfully removed
			NamespaceFinalizersRemaining False ContentHasNoFinalizers: All content-preserving finalizers finished`)
		up.Store(true)
		w.sleep(longestRetry)
		w.shows(``)
	})
}

func (w *world) put(key, value string, revision int64) {
	w.t.Helper()
	if _, err := w.backend.Commit(w.ctx, kv.Write{Key: key, Value: []byte(value), Expect: revision}); err != nil {
		w.t.Fatal(err)
	}
}

// Many objects that go one by one are not counted again for each of them.
func TestNamespaceLooksSeldom(t *testing.T) {
	in(t, func(w *world) {
		const n = 50
		for i := range n {
			w.create(fmt.Sprint("lead dev/", i), finalizer("test.example.com/f"))
		}
		w.delete("namespace dev", "")
		w.settle()
		var looks atomic.Int32
		w.refresh = func() { looks.Add(1) }
		for i := range n {
			w.release(fmt.Sprint("lead dev/", i))
			w.sleep(100 * time.Millisecond)
		}
		w.shows(``)
		if n := looks.Load(); n > 5 {
			t.Errorf("objects that went in five seconds were looked at %d times", n)
		}
	})
}

// A termination that a server did not finish is finished by the next one.
func TestNamespaceRestart(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/a", finalizer("test.example.com/f"))
		w.delete("namespace dev", foreground)
		w.settle()
		w.stop()
		w.release("lead dev/a")
		w.create("namespace ops")
		w.delete("namespace ops", "")
		w.shows(`
			namespace dev going
			namespace ops going`)
		w.start()
		w.shows(``)
	})
}

// What every namespace has is there, is repaired, and is not made again in one
// that goes.
func TestProvided(t *testing.T) {
	in(t, func(w *world) {
		check := func() {
			t.Helper()
			w.settle()
			account, trust := w.get("serviceaccount dev/default"), w.get("configmap dev/kube-root-ca.crt")
			if account == nil || trust == nil {
				t.Fatalf("account %v, trust %v", account, trust)
			}
			annotations, _ := object.Metadata(trust)["annotations"].(object.Tree)
			if got := fmt.Sprint(trust["data"]); got != "map[ca.crt:trust me]" || annotations[descriptionKey] != description {
				t.Fatalf("data %s, annotations %v", got, annotations)
			}
		}
		check()
		w.delete("serviceaccount dev/default", "")
		w.delete("configmap dev/kube-root-ca.crt", "")
		check()
		w.edit("configmap dev/kube-root-ca.crt", func(t object.Tree) { t["data"] = object.Tree{"ca.crt": "me", "x": "y"} })
		check()
		w.edit("configmap dev/kube-root-ca.crt", func(t object.Tree) { delete(object.Metadata(t), "annotations") })
		check()
		w.edit("configmap dev/kube-root-ca.crt", func(t object.Tree) {
			object.Metadata(t)["annotations"] = object.Tree{descriptionKey: "my own"}
		})
		w.settle()
		if got := object.Metadata(w.get("configmap dev/kube-root-ca.crt"))["annotations"]; fmt.Sprint(got) != "map["+descriptionKey+":my own]" {
			t.Errorf("annotations %v", got)
		}

		w.create("lead dev/a", finalizer("test.example.com/f"))
		w.delete("namespace dev", "")
		w.settle()
		if w.get("serviceaccount dev/default") != nil || w.get("configmap dev/kube-root-ca.crt") != nil {
			t.Error("they were made again")
		}
	})
}

// Events go an hour after they were last written, those of a server that was
// stopped too, and the clock is not looked at while there are none.
func TestEvents(t *testing.T) {
	in(t, func(w *world) {
		w.create("event dev/a", about("dev"))
		w.sleep(30 * time.Minute)
		w.create("event dev/b", about("dev"))
		w.create("event dev/kept", about("dev"))
		w.has("a b kept")
		w.sleep(31 * time.Minute)
		w.has("b kept")
		w.edit("event dev/kept", func(t object.Tree) { t["lastTimestamp"] = object.Timestamp(time.Now()) })
		w.stop()
		w.sleep(30 * time.Minute)
		w.has("b kept")
		w.start()
		w.has("kept")
		w.sleep(32 * time.Minute)
		w.has("")
		if n := len(w.found.queue.entries); n > 0 {
			t.Errorf("%d tasks are waiting", n)
		}
	})
}

// has checks which events there are.
func (w *world) has(want string) {
	w.t.Helper()
	w.settle()
	var names []string
	page, _ := w.backend.List(w.ctx, kv.Range{Prefix: w.kinds["event"].NamespacePrefix("dev")})
	for _, r := range page.Records {
		names = append(names, r.Key[strings.LastIndexByte(r.Key, '/')+1:])
	}
	if got := strings.Join(names, " "); got != want {
		w.t.Fatalf("there are events %q, want %q", got, want)
	}
}
