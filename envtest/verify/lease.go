package verify

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/envtest"
)

// rival is the identity that takes the Lease of the program.
const rival = "rival"

// A leadership is a Lease that the program holds.
type leadership struct {
	holder   string
	duration time.Duration
}

// A lostLease is a Lease that the program held, and the rival holds.
type lostLease struct {
	id    identity
	began time.Time
	// stops is the time at which the program must have stopped to write. With client-go, the deadline of the renewal
	// and the pause between two attempts are both shorter than the Lease.
	stops time.Time
	until time.Time // the rival releases it
}

// noteLease notes the Leases that the program holds by leader election. Leases without acquireTime are heartbeats.
func (r *run) noteLease(c envtest.Change) {
	if c.After == nil || c.User != r.world.user().Name || c.After.GetKind() != "Lease" || !passing(c.After.GroupVersionKind().GroupKind()) {
		return
	}
	var l coordinationv1.Lease
	id := identityOf(c.After)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(c.After.Object, &l); err != nil || l.Spec.AcquireTime == nil ||
		l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" || l.Spec.LeaseDurationSeconds == nil {
		return
	}
	r.leases[id] = leadership{*l.Spec.HolderIdentity, time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second}
}

// leader returns the first Lease that the program holds now, or nil.
func (r *run) leader() *identity {
	for _, id := range sorted(r.leases) {
		if r.holder(id) == r.leases[id].holder {
			return &id
		}
	}
	return nil
}

// holder returns the identity that holds a Lease, or "".
func (r *run) holder(id identity) string {
	u := r.state.objects[id]
	if u == nil {
		return ""
	}
	spec, _ := u.Object["spec"].(map[string]any)
	holder, _ := spec["holderIdentity"].(string)
	return holder
}

// loseLease makes the rival take a Lease before a write of the program. The write fails after the time at which the
// program must have stopped. It reports whether the program had a Lease.
func (r *run) loseLease(c *call) bool {
	id := r.leader()
	if id == nil || r.lost != nil {
		return false
	}
	d := r.leases[*id].duration
	r.lost = &lostLease{id: *id, began: time.Now(), stops: time.Now().Add(2 * d), until: time.Now().Add(4 * d)}
	r.tell("fault", fmt.Sprintf("another identity takes the %s, before the program can %s", id, c))
	if err := r.writeLease(*id, rival, 8*d); err != nil {
		r.fail(Scene, "taking the %s: %v", id, err)
	}
	r.delay(c, LoseLease, 2*d+time.Second)
	return true
}

// releaseLease ends a LoseLease. It reports whether it did.
func (r *run) releaseLease() bool {
	if r.lost == nil || time.Now().Before(r.lost.until) {
		return false
	}
	id := r.lost.id
	r.lost, r.changed = nil, time.Now()
	if r.holder(id) != rival {
		return true
	}
	r.tell("fault", fmt.Sprintf("the %s is released", id))
	if err := r.writeLease(id, "", time.Second); err != nil {
		r.fail(Scene, "releasing the %s: %v", id, err)
	}
	return true
}

// deposed fails the run if the program sends a write while the rival holds its Lease. Writes for which the program needs no
// Lease do not count.
func (r *run) deposed(c *call) {
	l := r.lost
	if l == nil || !c.arrived.After(l.stops) || r.holder(l.id) != rival || r.expect != nil && r.expect.withoutLease[l.id][r.stable(c.String(), r.expect)] {
		return
	}
	r.fail(Deposed, "the program sends %q %v after it lost the %s", c, c.arrived.Sub(l.began).Round(time.Second), l.id)
}

// takeLease makes the rival hold the Lease of follow from the beginning: before a request of the program passes, and as
// soon as the namespace exists.
func (r *run) takeLease() error {
	if r.taken == nil || r.holder(*r.taken) == rival {
		return nil
	}
	if err := r.writeLease(*r.taken, rival, 365*24*time.Hour); !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// writeLease gives a Lease to a holder.
func (r *run) writeLease(id identity, holder string, d time.Duration) error {
	ctx, u, l := context.Background(), newLease(id.namespace, id.name), &coordinationv1.Lease{}
	err := r.admin.Get(ctx, client.ObjectKeyFromObject(u), u)
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, l); err != nil {
		return err
	}
	now, seconds, transitions := metav1.NowMicro(), int32(d/time.Second), int32(1)
	if l.Spec.LeaseTransitions != nil {
		transitions += *l.Spec.LeaseTransitions
	}
	l.Spec = coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now, LeaseTransitions: &transitions}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&l.Spec)
	if err != nil {
		return err
	}
	if u.Object["spec"] = spec; missing {
		return r.admin.Create(ctx, u)
	}
	return r.admin.Update(ctx, u)
}

// newLease returns a Lease that a client of any scheme can write.
func newLease(namespace, name string) *object {
	u := &object{}
	u.SetGroupVersionKind(coordinationv1.SchemeGroupVersion.WithKind("Lease"))
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}
