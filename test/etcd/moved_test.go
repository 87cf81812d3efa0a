package etcd

import (
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// anykind serves the objects that a kube-apiserver keeps in a separate etcd once their keys are copied
// to the main etcd, as in docs/scale-out.md.
func TestResourcesInAnotherEtcdAreMoved(t *testing.T) {
	if !*bothWays {
		t.Skip("building kube-apiserver takes minutes; make both-ways does")
	}
	ctx := t.Context()
	all, apart := StartMember(t), StartMember(t)
	kube := startKube(t, all.Client, "--etcd-servers-overrides", "coordination.k8s.io/leases#"+apart.Client)
	const (
		leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
		keys   = "/registry/leases/"
	)
	eventually(t, func(ctx context.Context) error { // until the namespace exists
		return kube.Do(ctx, http.MethodPost, leases, map[string]any{
			"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
			"metadata": map[string]any{"name": "moved", "labels": map[string]any{"a": "b"}},
			"spec":     map[string]any{"holderIdentity": "me", "leaseDurationSeconds": 15},
		}, nil)
	})
	written, err := kube.Read(ctx, leases+"/moved")
	if err != nil {
		t.Fatal(err)
	}

	from, to := apart.client(), all.client()
	defer from.Close()
	defer to.Close()
	if left, err := to.Get(ctx, keys, clientv3.WithPrefix()); err != nil || left.Count > 0 {
		t.Fatalf("the etcd of all others has %v, %v", left, err)
	}
	found, err := from.Get(ctx, keys, clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range found.Kvs {
		if _, err := to.Put(ctx, string(kv.Key), string(kv.Value)); err != nil {
			t.Fatal(err)
		}
	}

	_, anykind := run(t, "--etcd-servers", all.Client)
	served, err := anykind.Read(ctx, leases+"/moved")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := unversioned(t, served), unversioned(t, written); !reflect.DeepEqual(got, want) {
		t.Errorf("%v was served as %v", want, got)
	}
}

// unversioned returns an object without its resourceVersion, which differs between etcds.
func unversioned(t *testing.T, data []byte) map[string]any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	metadata, _ := object["metadata"].(map[string]any)
	delete(metadata, "resourceVersion")
	return object
}
