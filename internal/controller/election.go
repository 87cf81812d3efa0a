package controller

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// The times of an election. The holder of the Lease stops before another server may take it: it
// counts renewDeadline from before the write that renewed the Lease, others count leaseDuration
// from after that write.
const (
	leaseSeconds  = 5
	leaseDuration = leaseSeconds * time.Second
	renewDeadline = 3500 * time.Millisecond
	renewPeriod   = time.Second
)

// ElectionLease is the name of the Lease in kube-system that says which of the
// servers of one store does the work.
const ElectionLease = "anykind-lifecycle"

var errHeld = errors.New("the lease is held by another")

// An Election lets one of several servers of a store do the work of an Engine.
// How old a Lease is, is told by how long it was seen not to change, so clocks
// need not agree.
type Election struct {
	Objects  Objects
	Identity string // who we are, unlike all others

	seen  string    // the Lease of another, as it was last
	since time.Time // when that was first seen
}

// Run calls work whenever, and for as long as, we are the one to do it. It
// returns when ctx ends, or with the error of work that ended by itself.
func (e *Election) Run(ctx context.Context, work func(context.Context) error) error {
	e.Objects.complete()
	for {
		asked := time.Now()
		held, err := e.tryWithin(ctx, renewDeadline)
		if err != nil && ctx.Err() == nil {
			e.Objects.Logger.Warn("the lease of the controllers cannot be acquired", "error", err)
		}
		if held {
			e.Objects.Logger.Info("this server now runs the controllers", "identity", e.Identity)
			if done, err := e.lead(ctx, asked, work); done {
				e.release(ctx)
				return err
			}
			e.Objects.Logger.Warn("this server no longer runs the controllers", "identity", e.Identity)
		}
		select {
		case <-time.After(renewPeriod):
		case <-ctx.Done():
			return nil
		}
	}
}

// lead works until the Lease is lost, or, which is done, the work or ctx ends. The write that took
// the Lease began at asked.
func (e *Election) lead(ctx context.Context, asked time.Time, work func(context.Context) error) (done bool, err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- work(working) }()
	deadline := time.NewTimer(time.Until(asked.Add(renewDeadline)))
	defer deadline.Stop()
	renewed := make(chan renewal)
	go e.renew(working, renewed)
	for {
		select {
		case err := <-ended:
			return true, err
		case r := <-renewed:
			if r.held {
				deadline.Reset(time.Until(r.asked.Add(renewDeadline)))
				continue
			}
		case <-deadline.C:
		}
		stop()
		err := <-ended
		return ctx.Err() != nil, err
	}
}

// A renewal is the outcome of a write that keeps the Lease.
type renewal struct {
	held  bool
	asked time.Time // before the write
}

// renew keeps the Lease and reports each outcome that is known.
func (e *Election) renew(ctx context.Context, renewed chan<- renewal) {
	for {
		select {
		case <-time.After(renewPeriod):
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		held, err := e.tryWithin(ctx, renewPeriod)
		if err != nil {
			continue
		}
		select {
		case renewed <- renewal{held, asked}:
		case <-ctx.Done():
			return
		}
	}
}

func (e *Election) leases() *resource.Definition {
	return e.Objects.Lookup("coordination.k8s.io", "leases")
}

// tryWithin tries for a time. A write without an answer by then may still happen: others then see
// a Lease that is held, and the next attempt finds it ours.
func (e *Election) tryWithin(ctx context.Context, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return e.try(ctx)
}

// try takes or keeps the Lease, if it is free or ours.
func (e *Election) try(ctx context.Context) (bool, error) {
	d := e.leases()
	err := e.Objects.Replace(ctx, d, metav1.NamespaceSystem, ElectionLease, func(old object.Tree) (object.Tree, error) {
		return e.next(old, d, time.Now())
	})
	if errors.Is(err, errHeld) {
		return false, nil
	}
	return err == nil, err
}

// release leaves the Lease to whoever comes next, who would wait otherwise until it
// has run out. That it cannot is no fault.
func (e *Election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewPeriod)
	defer cancel()
	err := e.Objects.Replace(ctx, e.leases(), metav1.NamespaceSystem, ElectionLease, func(old object.Tree) (object.Tree, error) {
		spec, _ := old["spec"].(object.Tree)
		if holder, _ := spec["holderIdentity"].(string); holder != e.Identity {
			return nil, errHeld
		}
		t := object.CloneTree(old)
		t["spec"].(object.Tree)["holderIdentity"] = ""
		return t, nil
	})
	if err != nil {
		e.Objects.Logger.Info("the lease of the controllers cannot be released and will expire", "error", err)
	}
}

// next is the Lease once we hold it.
func (e *Election) next(old object.Tree, d *resource.Definition, now time.Time) (object.Tree, error) {
	t := object.Tree{
		"apiVersion": d.APIVersion(d.StorageVersion().Name), "kind": d.Kind,
		"metadata": object.Tree{"name": ElectionLease, "namespace": metav1.NamespaceSystem},
	}
	if old != nil {
		t = object.CloneTree(old)
	}
	spec, _ := t["spec"].(object.Tree)
	if spec == nil {
		spec = object.Tree{}
	}
	t["spec"] = spec
	at := now.UTC().Format(metav1.RFC3339Micro)
	holder, _ := spec["holderIdentity"].(string)
	if holder != e.Identity {
		renewTime, _ := spec["renewTime"].(string)
		if seen := holder + " " + renewTime; holder != "" && seen != e.seen {
			e.seen, e.since = seen, now
		}
		if holder != "" && now.Sub(e.since) < leaseDuration {
			return nil, errHeld
		}
		transitions, _ := spec["leaseTransitions"].(int64)
		if old != nil {
			transitions++
		}
		spec["holderIdentity"], spec["acquireTime"], spec["leaseTransitions"] = e.Identity, at, transitions
	}
	spec["leaseDurationSeconds"], spec["renewTime"] = int64(leaseSeconds), at
	return t, nil
}
