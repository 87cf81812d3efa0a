package storageversion

import (
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

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

	mu      sync.Mutex
	pending map[schema.GroupResource]error // with the last error
}

// NewBarrier returns a Barrier for the built-in resources of a set.
func NewBarrier(set *resource.Set) *Barrier {
	b := &Barrier{records: recordsOf(set), pending: map[schema.GroupResource]error{}}
	for _, r := range b.records {
		for _, of := range r.resources {
			b.pending[of] = nil
		}
	}
	return b
}

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
	of := schema.GroupResource{Group: info.Group, Resource: info.Resource}
	if of == storageVersions || of == leases && info.Namespace == metav1.NamespaceSystem {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	last, waits := b.pending[of]
	if !waits {
		return nil
	}
	return status.Unavailable(fmt.Sprintf("wait for storage version registration to complete for resource: %v, last seen error: %v", of, last))
}

// report records the result of the publication of a record.
func (b *Barrier) report(r *record, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range r.resources {
		if err == nil {
			delete(b.pending, of)
		} else if _, waits := b.pending[of]; waits {
			b.pending[of] = err
		}
	}
}

// Release lets all requests pass. A server that publishes nothing calls it.
func (b *Barrier) Release() {
	if b != nil {
		b.done.Store(true)
	}
}

// Released reports whether all requests pass.
func (b *Barrier) Released() bool { return b == nil || b.done.Load() }
