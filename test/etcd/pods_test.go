package etcd

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var (
	pods    = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	budgets = schema.GroupVersionResource{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}
)

// clients is the number of concurrent clients, half of them for each server.
const clients = 64

func atOnce(do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range clients {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}

func newPod(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "labels": map[string]any{"app": "x"}},
		"spec": map[string]any{"terminationGracePeriodSeconds": int64(30), "containers": []any{map[string]any{"name": "c", "image": "i"}}},
	}}
}

func sent(apiVersion, kind, name string, more map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}}}
	for field, value := range more {
		o.Object[field] = value
	}
	return o
}

// Two servers over one etcd bind a pod once, whichever server a binder uses.
func TestOneBinderWinsAtTwoServers(t *testing.T) {
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url)}
	ctx, got := t.Context(), must[*unstructured.Unstructured](t)
	for round := range 3 {
		name := fmt.Sprint("p", round)
		got(servers[0].Resource(pods).Namespace("default").Create(ctx, newPod(name), metav1.CreateOptions{}))
		errs := make([]error, clients)
		atOnce(func(i int) {
			binding := sent("v1", "Binding", name, map[string]any{"target": map[string]any{"kind": "Node", "name": fmt.Sprint("n", i)}})
			_, errs[i] = servers[i%2].Resource(pods).Namespace("default").Create(ctx, binding, metav1.CreateOptions{}, "binding")
		})
		bound := got(servers[1].Resource(pods).Namespace("default").Get(ctx, name, metav1.GetOptions{}))
		node, _, _ := unstructured.NestedString(bound.Object, "spec", "nodeName")
		for i, err := range errs {
			if won := node == fmt.Sprint("n", i); won != (err == nil) || !won && !apierrors.IsConflict(err) {
				t.Errorf("n%d, while the pod is on %q: %v", i, node, err)
			}
		}
	}
}

// Two servers over one etcd enforce a budget together.
func TestNoBudgetIsBrokenAtTwoServers(t *testing.T) {
	const allowed = 10
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url)}
	ctx, got := t.Context(), must[*unstructured.Unstructured](t)
	setStatus := func(resource schema.GroupVersionResource, o *unstructured.Unstructured, status map[string]any) {
		client := servers[0].Resource(resource).Namespace("default")
		o = got(client.Create(ctx, o, metav1.CreateOptions{}))
		for name, value := range status {
			if err := unstructured.SetNestedField(o.Object, value, "status", name); err != nil {
				t.Fatal(err)
			}
		}
		got(client.UpdateStatus(ctx, o, metav1.UpdateOptions{}))
	}
	setStatus(budgets, sent("policy/v1", "PodDisruptionBudget", "b", map[string]any{"spec": map[string]any{
		"minAvailable": int64(1), "selector": map[string]any{"matchLabels": map[string]any{"app": "x"}},
	}}), map[string]any{"observedGeneration": int64(1), "currentHealthy": int64(clients), "desiredHealthy": int64(clients - allowed), "disruptionsAllowed": int64(allowed)})
	for i := range clients {
		p := newPod(fmt.Sprint("p", i))
		p.Object["spec"].(map[string]any)["nodeName"] = "node"
		setStatus(pods, p, map[string]any{"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}})
	}
	errs := make([]error, clients)
	atOnce(func(i int) {
		name := fmt.Sprint("p", i)
		_, errs[i] = servers[i%2].Resource(pods).Namespace("default").Create(ctx, sent("policy/v1", "Eviction", name, nil), metav1.CreateOptions{}, "eviction")
	})
	var evicted []string
	for i, err := range errs {
		p := got(servers[1].Resource(pods).Namespace("default").Get(ctx, fmt.Sprint("p", i), metav1.GetOptions{}))
		if going := p.GetDeletionTimestamp() != nil; going != (err == nil) || !going && !apierrors.IsTooManyRequests(err) {
			t.Errorf("p%d: deleted %t, %v", i, going, err)
		}
		if err == nil {
			evicted = append(evicted, p.GetName())
		}
	}
	b := got(servers[1].Resource(budgets).Namespace("default").Get(ctx, "b", metav1.GetOptions{}))
	left, _, _ := unstructured.NestedInt64(b.Object, "status", "disruptionsAllowed")
	named, _, _ := unstructured.NestedMap(b.Object, "status", "disruptedPods")
	for name := range named {
		if !slices.Contains(evicted, name) {
			t.Errorf("the budget names %s, which is not evicted", name)
		}
	}
	if len(evicted) != allowed || left != 0 || len(named) != allowed {
		t.Errorf("%d are evicted, %d are allowed still, the budget names %d", len(evicted), left, len(named))
	}
}
