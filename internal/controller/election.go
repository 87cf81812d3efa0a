package controller

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// A Term is the Lease in kube-system that elects one of the servers of a store, and its timing. The
// holder of the Lease must stop before another server can take it. So it counts Deadline from before
// its renewing write, and other servers count Duration from after that write.
type Term struct {
	Lease    string
	Duration time.Duration
	Deadline time.Duration // shorter than Duration
	Period   time.Duration // of renewals and attempts, shorter than Deadline
}

// The Term of most controllers.
const (
	electionLease = "anykind-lifecycle"
	leaseDuration = 5 * time.Second
	renewDeadline = 3500 * time.Millisecond
	renewPeriod   = time.Second
)

var errHeld = errors.New("the lease is held by another")

// An Election elects one of several servers of a store to run an Engine. A server measures the age
// of a Lease by the time during which it has not seen it change, so clocks need not agree.
type Election struct {
	Objects  Objects
	Identity string // unique for each server
	Term     Term   // the zero Term is that of most controllers

	seen  string    // holder and renewTime of another server's Lease
	since time.Time // time of the first observation of seen
}

// Run calls work while this server holds the Lease. It returns when ctx ends, or with the error of
// a work that returns early.
func (e *Election) Run(ctx context.Context, work func(context.Context) error) error {
	e.complete()
	for {
		asked := time.Now()
		held, err := e.tryWithin(ctx, e.Term.Deadline)
		if err != nil && ctx.Err() == nil {
			e.Objects.Logger.Warn("the lease of the controllers cannot be acquired", "lease", e.Term.Lease, "error", err)
		}
		if held {
			e.Objects.Logger.Info("this server now runs the controllers", "lease", e.Term.Lease, "identity", e.Identity)
			done, err := e.lead(ctx, asked, work)
			e.release(ctx)
			if done {
				return err
			}
			e.Objects.Logger.Warn("this server no longer runs the controllers", "lease", e.Term.Lease, "identity", e.Identity)
		}
		select {
		case <-time.After(e.Term.Period):
		case <-ctx.Done():
			return nil
		}
	}
}

// complete sets the defaults.
func (e *Election) complete() {
	e.Objects.complete()
	if e.Term.Lease == "" {
		e.Term = Term{Lease: electionLease, Duration: leaseDuration, Deadline: renewDeadline, Period: renewPeriod}
	}
}

// lead runs work until the Lease is lost, work returns or ctx ends; done is true in the last two
// cases. asked is the time before the write that took the Lease.
func (e *Election) lead(ctx context.Context, requested time.Time, work func(context.Context) error) (done bool, err error) {
	working, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- work(working) }()
	deadline := time.NewTimer(time.Until(requested.Add(e.Term.Deadline)))
	defer deadline.Stop()
	renewed, renews := make(chan renewal), make(chan struct{})
	go func() {
		defer close(renews)
		e.renew(working, renewed)
	}()
	defer func() { stop(); <-renews }() // it writes the state of the Election
	for {
		select {
		case err := <-ended:
			return true, err
		case r := <-renewed:
			if r.held {
				deadline.Reset(time.Until(r.requested.Add(e.Term.Deadline)))
				continue
			}
		case <-deadline.C:
		}
		stop()
		err := <-ended
		return ctx.Err() != nil, err
	}
}

// A renewal is the result of a write that renews the Lease.
type renewal struct {
	held      bool
	requested time.Time // before the write
}

// renew renews the Lease periodically and sends each known result.
func (e *Election) renew(ctx context.Context, renewed chan<- renewal) {
	for {
		select {
		case <-time.After(e.Term.Period):
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		held, err := e.tryWithin(ctx, e.Term.Period)
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

// tryWithin is try with a timeout. A write that times out may still succeed. Other servers then see
// a held Lease, and the next attempt of this server renews it.
func (e *Election) tryWithin(ctx context.Context, limit time.Duration) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return e.try(ctx)
}

// try takes or renews the Lease, if it is free or held by this server.
func (e *Election) try(ctx context.Context) (bool, error) {
	d := e.leases()
	err := e.Objects.Replace(ctx, d, metav1.NamespaceSystem, e.Term.Lease, func(old object.Tree) (object.Tree, error) {
		return e.next(old, d, time.Now())
	})
	if errors.Is(err, errHeld) {
		return false, nil
	}
	return err == nil, err
}

// release gives up the Lease, so that the next server need not wait until it expires. An error is
// only logged.
func (e *Election) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.Term.Period)
	defer cancel()
	err := e.Objects.Replace(ctx, e.leases(), metav1.NamespaceSystem, e.Term.Lease, func(old object.Tree) (object.Tree, error) {
		spec, _ := old["spec"].(object.Tree)
		if holder, _ := spec["holderIdentity"].(string); holder != e.Identity {
			return nil, errHeld
		}
		t := object.CloneTree(old)
		t["spec"].(object.Tree)["holderIdentity"] = ""
		return t, nil
	})
	if err != nil && !errors.Is(err, errHeld) {
		e.Objects.Logger.Info("the lease of the controllers cannot be released and will expire", "lease", e.Term.Lease, "error", err)
	}
}

// next returns the Lease as held by this server.
func (e *Election) next(old object.Tree, d *resource.Definition, now time.Time) (object.Tree, error) {
	t := object.Tree{
		"apiVersion": d.APIVersion(d.StorageVersion().Name), "kind": d.Kind,
		"metadata": object.Tree{"name": e.Term.Lease, "namespace": metav1.NamespaceSystem},
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
		if holder != "" && now.Sub(e.since) < e.durationOf(spec) {
			return nil, errHeld
		}
		transitions, _ := spec["leaseTransitions"].(int64)
		if old != nil {
			transitions++
		}
		spec["holderIdentity"], spec["acquireTime"], spec["leaseTransitions"] = e.Identity, at, transitions
	}
	// Other servers wait for this time: a part of a second counts as a second.
	spec["leaseDurationSeconds"], spec["renewTime"] = int64((e.Term.Duration+time.Second-1)/time.Second), at
	return t, nil
}

// durationOf returns the duration of another server's Lease. Its flags may differ from those of this
// server.
func (e *Election) durationOf(spec object.Tree) time.Duration {
	if seconds, ok := spec["leaseDurationSeconds"].(int64); ok && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	return e.Term.Duration
}
