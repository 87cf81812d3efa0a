package garbage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// After any events the graph equals one that is built from all stored objects.
func TestOwnersIsWhatIsStored(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	o := newOwners()
	stored := map[string]*controller.Header{}
	uids := 0
	for step := range 2_000 {
		key := fmt.Sprint("/registry/things/", random.IntN(12))
		h := stored[key]
		switch {
		case h == nil:
			uids++
			h = &controller.Header{Key: key, Encoded: object.Encoded{UID: fmt.Sprint(uids)}}
		case random.IntN(4) == 0:
			delete(stored, key)
			o.gone(key, h.UID)
			compare(t, step, o, stored)
			continue
		default:
			h = &controller.Header{Key: key, Encoded: h.Encoded}
		}
		h.Owners = someOwners(random, uids)
		h.Deleting = random.IntN(3) == 0
		if random.IntN(2) == 0 {
			h.Finalizers = []string{metav1.FinalizerDeleteDependents}
		}
		stored[key] = h
		o.put(h)
		compare(t, step, o, stored)
	}
}

func someOwners(random *rand.Rand, uids int) (owners []metav1.OwnerReference) {
	for range random.IntN(4) {
		blocks := random.IntN(2) == 0
		uid := types.UID(fmt.Sprint(max(1, uids-random.IntN(12))))
		owners = append(owners, metav1.OwnerReference{UID: uid, BlockOwnerDeletion: &blocks})
	}
	return owners
}

func compare(t *testing.T, step int, o *owners, stored map[string]*controller.Header) {
	t.Helper()
	naive := newOwners()
	for _, h := range stored {
		naive.put(h)
	}
	if got, want := text(o), text(naive); got != want {
		t.Fatalf("step %d: remembered\n%s\nstored\n%s", step, got, want)
	}
}

func text(o *owners) string {
	var lines []string
	for key, n := range o.nodes {
		lines = append(lines, fmt.Sprint(key, " is ", n.uid))
	}
	for uid, f := range o.families {
		var keys []string
		for n := range maps.Keys(f.dependents) {
			keys = append(keys, n.key)
		}
		slices.Sort(keys)
		lines = append(lines, fmt.Sprint(uid, " waiting ", f.waiting, " blocking ", f.blocking, " of ", keys))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Random owner references on servers that start and stop. In the end no object has only deleted
// owners, and no deletion waits without a reason.
func TestRandomOwners(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			in(t, func(w *world) { w.live(rand.New(rand.NewPCG(seed, 7))) })
		})
	}
}

func (w *world) live(random *rand.Rand) {
	name := func() string {
		return [...]string{"hub ", "lead dev/", "configmap dev/"}[random.IntN(3)] + fmt.Sprint(random.IntN(8))
	}
	policies := [...]metav1.DeletionPropagation{"", background, foreground, orphaning}
	for range 150 {
		switch a, b := name(), name(); {
		case random.IntN(20) == 0:
			w.Stop()
			w.Start()
		case random.IntN(10) == 0:
			w.Wait()
		case w.Get(a) == nil:
			_ = w.TryCreate(a, func(_ *controllertest.World, t object.Tree) {
				if owner := w.Get(b); owner != nil && (strings.HasPrefix(b, "hub") || !strings.HasPrefix(a, "hub")) {
					w.Name(t, w.Target(b), object.UID(owner), random.IntN(2) == 0)
				}
			})
		case random.IntN(2) == 0:
			w.tryDelete(a, policies[random.IntN(len(policies))])
		}
	}
	w.Sleep(2 * controller.LongestRetry)
	w.consistent()
}

// tryDelete deletes an object that may not exist.
func (w *world) tryDelete(what string, policy metav1.DeletionPropagation) {
	options := &metav1.DeleteOptions{}
	if policy != "" {
		options.PropagationPolicy = &policy
	}
	objects := w.Objects()
	if err := objects.Delete(w.Ctx, w.Target(what).Definition, w.Key(what), options); err != nil {
		w.T.Error(err)
	}
}

func (w *world) consistent() {
	w.T.Helper()
	page, err := w.Backend.List(w.Ctx, kv.Range{Prefix: resource.Root})
	if err != nil {
		w.T.Fatal(err)
	}
	alive := map[string]bool{}
	var headers []*controller.Header
	for _, r := range page.Records {
		h, err := controller.ReadHeader(r.Key, r.Value, r.Revision)
		if err != nil {
			w.T.Fatal(err)
		}
		alive[h.UID] = true
		headers = append(headers, h)
	}
	for _, h := range headers {
		if h.Deleting {
			w.T.Errorf("%s waits: %v", h.Key, h.Finalizers)
		}
		for _, o := range h.Owners {
			if !alive[string(o.UID)] {
				w.T.Errorf("%s names %s, which is gone", h.Key, o.Name)
			}
		}
	}
}

// Memory for each of many objects of one owner.
func BenchmarkOwnersPut(b *testing.B) {
	o := newOwners()
	i := 0
	yes := true
	b.ReportAllocs()
	for b.Loop() {
		i++
		o.put(&controller.Header{
			Key: fmt.Sprintf("/registry/test.example.com/leads/dev/%d", i), Encoded: object.Encoded{UID: fmt.Sprint(i)},
			Owners: []metav1.OwnerReference{{UID: "owner", BlockOwnerDeletion: &yes}},
		})
	}
}
