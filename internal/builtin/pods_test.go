package builtin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A cluster is a registry of pods and their budgets.
type cluster struct {
	*testing.T
	registry *registry.Registry
	kinds    *resource.Set
}

func newCluster(t *testing.T, backend kv.Backend) *cluster {
	return newClusterWith(t, backend, Dependencies{})
}

func newClusterWith(t *testing.T, backend kv.Backend, p Dependencies) *cluster {
	cache := watchcache.New(backend, watchcache.Options{})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = backend.Close()
	})
	kinds := resource.NewSet(p.Definitions())
	GiveAddresses(kinds, cache, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, allocation.PortRange{Base: 30000, Size: 2768}, nil)
	return &cluster{t, registry.New(backend, cache, registry.Options{}), kinds}
}

func (c *cluster) target(group, plural, name, subresource string) registry.Target {
	t := registry.StorageTarget(c.kinds.Lookup(group, plural), "default", name)
	t.Subresource = subresource
	return t
}

// create creates an object, and sets its status if it has one.
func (c *cluster) create(group, plural, text string) {
	c.Helper()
	tree := read(c, text)
	target := c.target(group, plural, object.Name(tree), "")
	target.Version.Schema.Default(tree)
	if _, err := c.registry.Create(c.Context(), target, registry.Given(tree), registry.WriteOptions{}); err != nil {
		c.Fatal(err)
	}
	if tree["status"] == nil {
		return
	}
	target.Subresource = "status"
	_, err := c.registry.Modify(c.Context(), target, func(old object.Tree) (object.Tree, error) {
		out := object.CloneTree(old)
		for name, value := range kind.Tree(tree, "status") {
			kind.Child(out, "status")[name] = object.Clone(value)
		}
		return out, nil
	}, registry.WriteOptions{})
	if err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) get(group, plural, name string) object.Tree {
	c.Helper()
	target := c.target(group, plural, name, "")
	o, err := c.registry.Get(c.Context(), target, "")
	if err != nil {
		c.Fatal(err)
	}
	tree, err := c.registry.Decode(c.Context(), target.Definition, target.Version, o)
	if err != nil {
		c.Fatal(err)
	}
	return tree
}

// An update of the status changes neither the deletion timestamp nor the owners.
func TestStatusLeavesMetadata(t *testing.T) {
	c := newCluster(t, memkv.New(memkv.Options{}))
	c.create("", "pods", `{apiVersion: v1, kind: Pod, metadata: {name: a, labels: {app: web}}, spec: {containers: [{name: c, image: i}]}}`)
	_, err := c.registry.Modify(t.Context(), c.target("", "pods", "a", "status"), func(old object.Tree) (object.Tree, error) {
		out := object.CloneTree(old)
		metadata := object.Metadata(out)
		metadata["deletionTimestamp"] = "2020-01-01T00:00:00Z"
		metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "b", "uid": "u"}}
		kind.Child(out, "status")["message"] = "seen"
		return out, nil
	}, registry.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod := c.get("", "pods", "a")
	for _, name := range []string{"deletionTimestamp", "ownerReferences"} {
		if got := object.Metadata(pod)[name]; got != nil {
			t.Errorf("%s is %v", name, got)
		}
	}
	same(t, "the message", kind.Value(pod, "status", "message"), "seen")
}

// send creates an object through a subresource of a pod.
func (c *cluster) send(pod, subresource, text string) error {
	_, err := c.registry.Answer(c.Context(), c.target("", "pods", pod, subresource), registry.Given(read(c, text)), registry.WriteOptions{})
	return err
}

// together calls do n times concurrently.
func together(n int, do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

const runningPod = `
apiVersion: v1
kind: Pod
metadata: {name: %s, labels: {app: x}}
spec: {nodeName: %s, terminationGracePeriodSeconds: 30, containers: [{name: c, image: i}]}
status: {phase: Running, conditions: [{type: Ready, status: "True", lastProbeTime: null, lastTransitionTime: null}]}
`

// Of many concurrent bindings of a pod one succeeds, and the errors of the others name the node.
func TestOneBinderWins(t *testing.T) {
	c := newCluster(t, memkv.New(memkv.Options{}))
	for round := range 8 {
		name := fmt.Sprint("p", round)
		c.create("", "pods", fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {containers: [{name: c, image: i}]}}`, name))
		var winners atomic.Int64
		errs := make([]error, 64)
		together(len(errs), func(i int) {
			errs[i] = c.send(name, "binding", fmt.Sprintf(`{apiVersion: v1, kind: Binding, metadata: {name: %s, labels: {by: n%d}}, target: {kind: Node, name: n%d}}`, name, i, i))
			if errs[i] == nil {
				winners.Add(1)
			}
		})
		bound := c.get("", "pods", name)
		node := kind.Text(bound, "spec", "nodeName")
		if winners.Load() != 1 || node == "" || kind.Text(bound, "metadata", "labels", "by") != node {
			t.Fatalf("%d have won, and the pod is on %q with labels of %q", winners.Load(), node, kind.Text(bound, "metadata", "labels", "by"))
		}
		for i, err := range errs {
			won := fmt.Sprint("n", i) == node
			if won != (err == nil) || !won && !strings.Contains(err.Error(), fmt.Sprintf("is already assigned to node %q", node)) {
				t.Errorf("n%d, while %s has won: %v", i, node, err)
			}
		}
	}
}

const budget = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: b}
spec: {minAvailable: 1, selector: {matchLabels: {app: x}}}
status: {observedGeneration: 1, currentHealthy: 64, desiredHealthy: %d, disruptionsAllowed: %d, expectedPods: 64}
`

const eviction = `{apiVersion: policy/v1, kind: Eviction, metadata: {name: %s}}`

// Concurrent evictions never exceed the budget, and the budget lists the evicted pods.
func TestNoBudgetIsBroken(t *testing.T) {
	const pods, allowed = 64, 10
	c := newCluster(t, memkv.New(memkv.Options{}))
	c.create("policy", "poddisruptionbudgets", fmt.Sprintf(budget, pods-allowed, allowed))
	for i := range pods {
		c.create("", "pods", fmt.Sprintf(runningPod, fmt.Sprint("p", i), "n1"))
	}
	errs := make([]error, pods)
	together(pods, func(i int) {
		errs[i] = c.send(fmt.Sprint("p", i), "eviction", fmt.Sprintf(eviction, fmt.Sprint("p", i)))
	})
	var evicted []string
	for i, err := range errs {
		going := object.Deleting(c.get("", "pods", fmt.Sprint("p", i)))
		if going != (err == nil) || err != nil && !status.Is(err, metav1.StatusReasonTooManyRequests) {
			t.Errorf("p%d: deleted %t, %v", i, going, err)
		}
		if going {
			evicted = append(evicted, fmt.Sprint("p", i))
		}
	}
	b := kind.Tree(c.get("policy", "poddisruptionbudgets", "b"), "status")
	named := slices.Sorted(maps.Keys(kind.Tree(b, "disruptedPods")))
	slices.Sort(evicted)
	if len(evicted) != allowed || b["disruptionsAllowed"] != int64(0) || !slices.Equal(named, evicted) {
		t.Errorf("%d are evicted, %v are allowed still, the budget names %v, want %v", len(evicted), b["disruptionsAllowed"], named, evicted)
	}
}

// failing is a store that fails after a number of writes.
type failing struct {
	kv.Backend
	left atomic.Int64
}

func (f *failing) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if f.left.Add(-1) < 0 {
		return 0, kv.ErrFull
	}
	return f.Backend.Commit(ctx, w)
}

// At whatever write an eviction is interrupted, the budget has used an allowance exactly if the pod
// is marked.
func TestEvictionIsCutOff(t *testing.T) {
	for writes := range int64(3) {
		f := &failing{Backend: memkv.New(memkv.Options{})}
		f.left.Store(1 << 30)
		c := newCluster(t, f)
		c.create("policy", "poddisruptionbudgets", fmt.Sprintf(budget, 1, 5))
		c.create("", "pods", fmt.Sprintf(runningPod, "a", "n1"))
		f.left.Store(writes)
		err := c.send("a", "eviction", fmt.Sprintf(eviction, "a"))
		if (err == nil) != (writes == 2) {
			t.Errorf("after %d writes: %v", writes, err)
		}
		a := c.get("", "pods", "a")
		said := slices.ContainsFunc(kind.List(a, "status", "conditions"), func(v any) bool {
			return kind.Text(v.(map[string]any), "type") == "DisruptionTarget"
		})
		taken := kind.Value(c.get("policy", "poddisruptionbudgets", "b"), "status", "disruptionsAllowed") == int64(4)
		if said != (writes > 0) || taken != said || object.Deleting(a) != (writes == 2) {
			t.Errorf("after %d writes: the pod says so %t and is deleted %t, the allowance is taken %t", writes, said, object.Deleting(a), taken)
		}
	}
}

// A pod that becomes ready during its eviction as an unready pod needs an allowance.
func TestReadyMeanwhile(t *testing.T) {
	var meanwhile func()
	o := &overtaking{Backend: memkv.New(memkv.Options{})}
	c := newCluster(t, o)
	c.create("policy", "poddisruptionbudgets", fmt.Sprintf(budget, 64, 0))
	c.create("", "pods", strings.Replace(fmt.Sprintf(runningPod, "a", "n1"), `"True"`, `"False"`, 1))
	meanwhile = func() {
		target := c.target("", "pods", "a", "status")
		_, err := c.registry.Modify(t.Context(), target, func(old object.Tree) (object.Tree, error) {
			out := object.CloneTree(old)
			kind.List(out, "status", "conditions")[0].(map[string]any)["status"] = "True"
			return out, nil
		}, registry.WriteOptions{})
		if err != nil {
			t.Error(err)
		}
	}
	o.once = &meanwhile
	err := c.send("a", "eviction", fmt.Sprintf(eviction, "a"))
	if !status.Is(err, metav1.StatusReasonTooManyRequests) || object.Deleting(c.get("", "pods", "a")) {
		t.Errorf("got %v", err)
	}
}

// overtaking does something before the next write, once.
type overtaking struct {
	kv.Backend
	once *func()
}

func (o *overtaking) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if once := o.once; once != nil {
		o.once = nil
		(*once)()
	}
	return o.Backend.Commit(ctx, w)
}

// An eviction with a resourceVersion gets a conflict after a concurrent change, and is not retried.
func TestEvictionOfAState(t *testing.T) {
	o := &overtaking{Backend: memkv.New(memkv.Options{})}
	c := newCluster(t, o)
	c.create("", "pods", fmt.Sprintf(runningPod, "a", "n1"))
	meanwhile := func() { c.touch() }
	o.once = &meanwhile
	at := object.ResourceVersion(c.get("", "pods", "a"))
	err := c.send("a", "eviction", fmt.Sprintf(`{apiVersion: policy/v1, kind: Eviction, metadata: {name: a}, deleteOptions: {preconditions: {resourceVersion: %q}}}`, at))
	if !status.Is(err, metav1.StatusReasonConflict) || errors.Is(err, resource.ErrOvertaken) || object.Deleting(c.get("", "pods", "a")) {
		t.Errorf("got %v", err)
	}
}

// touch updates pod a, as another client would.
func (c *cluster) touch() {
	_, err := c.registry.Modify(c.Context(), c.target("", "pods", "a", ""), func(old object.Tree) (object.Tree, error) {
		out := object.CloneTree(old)
		kind.Child(object.Metadata(out), "labels")["late"] = "yes"
		return out, nil
	}, registry.WriteOptions{})
	if err != nil {
		c.Error(err)
	}
}

// nothing denies all additional permissions.
type nothing struct{}

func (nothing) May(_ context.Context, verb string) error { return errors.New("may not " + verb) }

// A permission to get a pod is not sufficient to connect to its containers, although a client can
// do so with GET.
func TestWhoMayTalk(t *testing.T) {
	c := newCluster(t, memkv.New(memkv.Options{}))
	c.create("", "pods", `{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}`)
	ctx := request.With(t.Context(), &request.Request{Access: nothing{}})
	for _, tt := range []struct{ subresource, method, want string }{
		{"exec", "GET", "may not create"},
		{"attach", "GET", "may not create"},
		{"portforward", "GET", "may not create"},
		{"exec", "POST", "pod a does not have a host assigned"}, // the kubelet is checked first
	} {
		target := c.target("", "pods", "a", tt.subresource)
		options, err := target.Version.Subresource(tt.subresource).ReadOptions(nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.registry.Connect(ctx, target, resource.Connection{Method: tt.method, Options: options}, nil)
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s by %s: %v", tt.subresource, tt.method, err)
		}
	}
}
