package storageversion

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// A Barrier rejects writes of built-in resources until the server has published their storage versions. A nil Barrier
// rejects none.
type Barrier struct {
	records []*record
	done    atomic.Bool
}

// NewBarrier returns a Barrier for the built-in resources of a set.
func NewBarrier(set *resource.Set) *Barrier { return &Barrier{records: recordsOf(set)} }

// Check returns the error for a request that has to wait. Leases in kube-system pass: the server needs one before it
// publishes.
func (b *Barrier) Check(info *request.Info) error {
	if b == nil || b.done.Load() || !info.IsResource {
		return nil
	}
	switch info.Verb {
	case "get", "list", "watch":
		return nil
	}
	of := resourceOf(info.Group, info.Resource)
	if of == storageVersions || of == leases && info.Namespace == metav1.NamespaceSystem {
		return nil
	}
	for _, r := range b.records {
		if !slices.Contains(r.resources, of) || r.done.Load() {
			continue
		}
		last := "<nil>"
		if failed := r.failed.Load(); failed != nil {
			last = (*failed).Error()
		}
		return status.Unavailable("wait for storage version registration to complete for resource: " + of + ", last seen error: " + last)
	}
	return nil
}

// Release lets all requests pass. A server that publishes nothing calls it.
func (b *Barrier) Release() {
	if b != nil {
		b.done.Store(true)
	}
}

// Ready returns an error until all requests pass.
func (b *Barrier) Ready(context.Context) error {
	if !b.done.Load() {
		return errors.New("not finished")
	}
	return nil
}
