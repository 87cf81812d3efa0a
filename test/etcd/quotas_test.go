package etcd

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

var resourceQuotas = schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}

// used returns the usage of a resource name in the status of a quota, or -1 without one.
func used(quota *unstructured.Unstructured, name string) int {
	list, _, _ := unstructured.NestedStringMap(quota.Object, "status", "used")
	if n, err := strconv.Atoi(list[name]); err == nil {
		return n
	}
	return -1
}

// Sixty-four clients create custom objects through three servers over one etcd, while the quota is
// created through one of them: exactly the allowed number exists, and no watch ever shows more.
// Deletions lower the usage.
func TestQuotaIsNotExceededByThreeServers(t *testing.T) {
	const most = 100
	url := Start(t)
	servers := []dynamic.Interface{serve(t, url), serve(t, url), serve(t, url)}
	ctx, got := t.Context(), must[*unstructured.Unstructured](t)
	crd, widgets := definition(0)
	got(servers[0].Resource(crds).Create(ctx, crd, metav1.CreateOptions{}))
	name := "count/" + crd.GetName()
	quotas := func(s int) dynamic.ResourceInterface { return servers[s].Resource(resourceQuotas).Namespace("default") }
	made, err := quotas(1).Create(ctx, sent("v1", "ResourceQuota", "q", map[string]any{
		"spec": map[string]any{"hard": map[string]any{name: strconv.Itoa(most)}},
	}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan int, 1)
	events, err := quotas(2).Watch(ctx, metav1.ListOptions{ResourceVersion: made.GetResourceVersion()})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		top := 0
		for e := range events.ResultChan() {
			if e.Type == watch.Modified {
				top = max(top, used(e.Object.(*unstructured.Unstructured), name))
			}
		}
		seen <- top
	}()
	eventually(t, func(context.Context) error {
		if q := got(quotas(0).Get(ctx, "q", metav1.GetOptions{})); used(q, name) < 0 {
			return fmt.Errorf("%v is not in force", q.Object)
		}
		return nil
	})

	var created, refused atomic.Int64
	atOnce(func(i int) {
		for j := range 4 {
			_, err := servers[(i+j)%len(servers)].Resource(widgets).Namespace("default").
				Create(ctx, object("example.com/v1", crd.Object["spec"].(map[string]any)["names"].(map[string]any)["kind"].(string), fmt.Sprintf("w%d-%d", i, j), ""), metav1.CreateOptions{})
			switch {
			case err == nil:
				created.Add(1)
			case apierrors.IsForbidden(err):
				refused.Add(1)
			default:
				t.Error(err)
			}
		}
	})
	if created.Load() != most || refused.Load() != 4*clients-most {
		t.Errorf("%d were created and %d refused", created.Load(), refused.Load())
	}
	for s := range servers {
		all, err := servers[s].Resource(widgets).Namespace("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if n := used(got(quotas(s).Get(ctx, "q", metav1.GetOptions{})), name); n != most || len(all.Items) != most {
			t.Errorf("server %d has %d, of which %d are charged", s, len(all.Items), n)
		}
	}
	if err := servers[1].Resource(widgets).Namespace("default").DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(context.Context) error {
		if n := used(got(quotas(2).Get(ctx, "q", metav1.GetOptions{})), name); n != 0 {
			return fmt.Errorf("%d are charged", n)
		}
		return nil
	})
	events.Stop()
	if top := <-seen; top != most {
		t.Errorf("%d were charged at most", top)
	}
}
