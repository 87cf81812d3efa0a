package registry_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A clock that tests move.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// Each case deletes one pod several times and gives the results: the second of its deletion time, its
// grace period, its generation and the number of writes; or that it is gone.
func TestGracefulDeletion(t *testing.T) {
	const end = "gone"
	seconds := func(n int64) *metav1.DeleteOptions { return &metav1.DeleteOptions{GracePeriodSeconds: &n} }
	type step struct {
		after   int // seconds
		options *metav1.DeleteOptions
		want    string
	}
	free := func(pod object.Tree) { delete(pod["spec"].(object.Tree), "nodeName") }
	phase := func(p string) func(object.Tree) {
		return func(pod object.Tree) { pod["status"] = object.Tree{"phase": p} }
	}
	for _, tt := range []struct {
		name  string
		pod   func(object.Tree) // how the pod differs from others
		steps []step
	}{
		{"what the pod says", nil, []step{{0, unsaid(), "at 30, 30s, generation 2, write 2"}}},
		{"what the client says", nil, []step{{0, seconds(5), "at 5, 5s, generation 2, write 2"}}},
		{"less than nothing is a second", nil, []step{{0, seconds(-7), "at 1, 1s, generation 2, write 2"}}},
		{"as much or more changes nothing", nil, []step{
			{0, seconds(5), "at 5, 5s, generation 2, write 2"},
			{1, seconds(5), "at 5, 5s, generation 2, write 2"},
			{0, seconds(50), "at 5, 5s, generation 2, write 2"},
			{0, unsaid(), "at 5, 5s, generation 2, write 2"},
		}},
		{"less counts from the beginning", nil, []step{
			{0, unsaid(), "at 30, 30s, generation 2, write 2"},
			{10, seconds(20), "at 20, 20s, generation 2, write 3"},
		}},
		{"it does not end in the past", nil, []step{
			{0, unsaid(), "at 30, 30s, generation 2, write 2"},
			{10, seconds(5), "at 10, 1s, generation 2, write 3"},
		}},
		{"none at all", nil, []step{{0, seconds(0), end}}},
		{"none any more", nil, []step{{0, unsaid(), "at 30, 30s, generation 2, write 2"}, {1, seconds(0), end}}},
		{"the time does not pass by itself", nil, []step{
			{0, seconds(3), "at 3, 3s, generation 2, write 2"},
			{60, unsaid(), "at 3, 3s, generation 2, write 2"},
		}},
		{"on no node", free, []step{{0, unsaid(), end}}},
		{"on no node, whatever the client says", free, []step{{0, seconds(5), end}}},
		{"failed", phase("Failed"), []step{{0, unsaid(), end}}},
		{"succeeded", phase("Succeeded"), []step{{0, unsaid(), end}}},
		{"running", phase("Running"), []step{{0, unsaid(), "at 30, 30s, generation 2, write 2"}}},
		{"held", func(pod object.Tree) { object.SetFinalizers(pod, []string{"example.com/x"}) }, []step{
			{0, seconds(5), "at 5, 5s, generation 2, write 2"},
			{1, seconds(0), "at 1, 0s, generation 2, write 3"},
			{1, seconds(0), "at 1, 0s, generation 2, write 3"},
		}},
		{"held, with its owner first", nil, []step{
			{0, &metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)}, "at 30, 30s, generation 2, write 2"},
			{1, seconds(0), "at 1, 0s, generation 2, write 3"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, c, target := pod(t, tt.pod)
			began := c.at
			for i, s := range tt.steps {
				c.at = c.at.Add(time.Duration(s.after) * time.Second)
				deletion, err := w.registry.Delete(w.ctx, target, s.options, registry.WriteOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if got := told(deletion, began); got != s.want {
					t.Errorf("deletion %d: %s, want %s", i+1, got, s.want)
				}
				if _, err := w.registry.Get(w.ctx, target, ""); (err != nil) != deletion.Gone {
					t.Errorf("deletion %d: gone %t, %v", i+1, deletion.Gone, err)
				}
			}
		})
	}
}

// unsaid returns options that leave the grace period to the pod.
func unsaid() *metav1.DeleteOptions { return &metav1.DeleteOptions{} }

// told describes the result of a deletion. The first write of a store has revision 2.
func told(d registry.Deletion, began time.Time) string {
	if d.Gone {
		return "gone"
	}
	metadata := object.Metadata(d.Object.Tree)
	ends, _ := time.Parse(time.RFC3339, fmt.Sprint(metadata["deletionTimestamp"]))
	revision, _ := registry.ParseRevision(object.ResourceVersion(d.Object.Tree))
	return fmt.Sprintf("at %d, %ds, generation %d, write %d",
		int(ends.Sub(began).Seconds()), metadata["deletionGracePeriodSeconds"], object.Generation(d.Object.Tree), revision-2)
}

// pod returns a store with a pod on a node; special changes the pod. The kind never orphans
// dependents.
func pod(t *testing.T, special func(object.Tree)) (*store, *clock, registry.Target) {
	backend := memkv.New(memkv.Options{})
	c := &clock{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}
	w := &store{t, t.Context(), registry.New(backend, caching(t, backend), registry.Options{Now: c.now}), resource.NewSet(builtin.Definitions())}
	target := registry.StorageTarget(w.kinds.Lookup("", "pods"), "default", "a")
	tree := object.Tree{"apiVersion": "v1", "kind": "Pod", "metadata": object.Tree{"name": "a"}, "spec": object.Tree{
		"nodeName": "n", "containers": []any{object.Tree{"name": "c", "image": "i"}},
	}}
	target.Version.Schema.Default(tree)
	if special != nil {
		special(tree)
	}
	if _, err := w.registry.Create(w.ctx, target, registry.Given(tree), registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	// A new pod always is pending, so its status needs a second write.
	target.Subresource = "status"
	_, err := w.registry.Modify(w.ctx, target, func(old object.Tree) (object.Tree, error) {
		out := object.CloneTree(old)
		status := object.Tree{"phase": "Running", "qosClass": "BestEffort", "message": "on its way"}
		if s, ok := tree["status"].(object.Tree); ok {
			status["phase"] = s["phase"]
		}
		out["status"] = status
		return out, nil
	}, registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	target.Subresource = ""
	return w, c, target
}

// Watchers see the deletion mark of a pod, and its state at that time, before they see its removal.
func TestDeletionIsSeen(t *testing.T) {
	w, _, target := pod(t, nil)
	events, err := w.registry.Watch(w.ctx, registry.StorageTarget(target.Definition, "default", ""), registry.WatchOptions{ResourceVersion: "3"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	if _, err := w.registry.Delete(w.ctx, target, &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, registry.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	for len(seen) < 2 {
		portion, err := events.Next(w.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range portion.Events {
			data, err := e.Object.JSON()
			if err != nil {
				t.Fatal(err)
			}
			marked := strings.Contains(string(data), `"deletionGracePeriodSeconds":0`)
			seen = append(seen, fmt.Sprintf("%v marked %t", e.Type, marked))
		}
	}
	if got := strings.Join(seen, ", "); got != "MODIFIED marked true, DELETED marked true" {
		t.Errorf("seen: %s", got)
	}
}

// A dry run has the response of a real deletion and no effect.
func TestDryGracefulDeletion(t *testing.T) {
	for seconds, want := range map[int64]string{0: "gone", 5: "at 5, 5s, generation 2, write 1"} {
		w, c, target := pod(t, nil)
		deletion, err := w.registry.Delete(w.ctx, target, &metav1.DeleteOptions{GracePeriodSeconds: &seconds}, registry.WriteOptions{DryRun: true})
		if err != nil || told(deletion, c.at) != want {
			t.Errorf("%ds: %s, %v, want %s", seconds, told(deletion, c.at), err, want)
		}
		if !object.Deleting(deletion.Object.Tree) {
			t.Errorf("%ds: the answer does not say that it is being deleted", seconds)
		}
		if o, err := w.registry.Get(w.ctx, target, ""); err != nil || o.Deleting() {
			t.Errorf("%ds: it is deleted: %v", seconds, err)
		}
	}
}

// A precondition holds for both writes of a deletion without a grace period.
func TestPreconditionsOfGracefulDeletion(t *testing.T) {
	w, _, target := pod(t, nil)
	stored, err := w.registry.Get(w.ctx, target, "")
	if err != nil {
		t.Fatal(err)
	}
	ask := func(uid, revision string) error {
		options := &metav1.DeleteOptions{GracePeriodSeconds: new(int64(0)), Preconditions: metav1.NewUIDPreconditions(uid)}
		options.Preconditions.ResourceVersion = &revision
		_, err := w.registry.Delete(w.ctx, target, options, registry.WriteOptions{})
		return err
	}
	revision := fmt.Sprint(stored.Revision)
	for _, wrong := range []error{ask("other", revision), ask(stored.UID(), "1")} {
		if wrong == nil || !strings.Contains(wrong.Error(), "in the precondition") {
			t.Errorf("got %v", wrong)
		}
	}
	if err := ask(stored.UID(), revision); err != nil {
		t.Error(err)
	}
}
