package app

import (
	"context"
	"encoding/json"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// TTL and renewal interval of the lease of a server that shares a store, as those of kube-apiserver.
const (
	masterLease = 15 * time.Second
	masterRenew = 10 * time.Second
)

// master keeps a lease with the address of this server until ctx ends. Other servers of the store,
// including kube-apiservers, add the address to the endpoints of the Service kubernetes.
func (w *wired) master(ctx context.Context, leaser kv.Leaser, at netip.Addr) error {
	return w.lease(ctx, leaser, resource.MasterLeasesPrefix+at.String(), func(generation int64) ([]byte, error) {
		return leaseOf(generation, nil, at.String())
	})
}

// lease keeps a record under a key until ctx ends. Each renewal is another generation of the record.
func (w *wired) lease(ctx context.Context, leaser kv.Leaser, key string, record func(generation int64) ([]byte, error)) error {
	for generation := int64(1); ; generation++ {
		value, err := record(generation)
		if err != nil {
			return err
		}
		if err := leaser.Lease(ctx, key, value, masterLease); err != nil && ctx.Err() == nil {
			w.log.Warn("the lease of this server cannot be renewed", "error", err)
		}
		select {
		case <-time.After(masterRenew):
		case <-ctx.Done():
			w.retire(ctx, key)
			return nil
		}
	}
}

// leaseOf returns the record of a server, in the format of kube-apiserver.
func leaseOf(generation int64, labels map[string]string, host string, ports ...corev1.EndpointPort) ([]byte, error) {
	//lint:ignore SA1019 a lease is one, in Kubernetes
	return json.Marshal(&corev1.Endpoints{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"},
		ObjectMeta: metav1.ObjectMeta{Generation: generation, Labels: labels},
		//lint:ignore SA1019 see above
		Subsets: []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: host}}, Ports: ports}},
	})
}

// retire deletes the lease. A failure is ignored: the lease expires.
func (w *wired) retire(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	record, err := w.backend.Get(ctx, key, kv.Latest)
	if err == nil {
		_, err = w.backend.Commit(ctx, kv.Write{Key: key, Expect: record.Revision})
	}
	if err != nil {
		w.log.Info("the lease of this server cannot be removed and will expire", "error", err)
	}
}
