package verify

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// elected is the World.Start of a controller with leader election. One that is careless goes on without the Lease.
func elected(f reconciler, careless bool) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, config *rest.Config) error {
		k, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		started, ended := false, make(chan error, 1)
		lead := func(leading context.Context) {
			if started {
				return
			}
			started = true
			if careless {
				leading = ctx
			}
			ended <- f.start(leading, config)
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{
				LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "maps"}, Client: k.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: string(uuid.NewUUID())},
			},
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: lead, OnStoppedLeading: func() {}},
		})
		if err != nil {
			return err
		}
		elector.Run(ctx)
		for careless && ctx.Err() == nil {
			elector.Run(ctx)
		}
		if started {
			err = <-ended
		}
		if ctx.Err() == nil {
			err = errors.Join(err, errors.New("leader election lost"))
		}
		return err
	}
}

// LoseLease finds a controller that goes on without its Lease.
func TestLoseLease(t *testing.T) {
	onlyBy(t, World{Start: elected(children, true), Quiet: time.Minute}, resize, LoseLease)
	harmless(t, World{Start: elected(children, false), Quiet: time.Minute}, resize, LoseLease)
}

// The report of a write without a Lease says when it was lost. A plan without a Lease has no such fault.
func TestLoseLeaseText(t *testing.T) {
	r := Explore(t, World{Start: elected(children, true), Plan: "lose-lease:2", Quiet: time.Minute}, applyOne)
	if len(r.Findings) != 1 || r.Findings[0].Kind != Deposed || !strings.Contains(r.Findings[0].Text, `the program sends "create secrets default" 31s after it lost the Lease default/maps`) {
		t.Fatal(r.Findings)
	}
	if r := Explore(t, World{Start: reconciler(children).start, Plan: "lose-lease:2"}, applyOne); len(r.Findings) > 0 || r.Missed != r.Plans {
		t.Error(r, r.Findings)
	}
}

// Writes that a program does without its Lease are known from a run in which another identity holds it.
func TestWritesWithoutLease(t *testing.T) {
	both := func(ctx context.Context, config *rest.Config) error {
		ended := make(chan error, 1)
		go func() { ended <- reconciler(children).start(ctx, config) }()
		for ctx.Err() == nil {
			_ = elected(polling, false)(ctx, config)
		}
		return <-ended
	}
	x, _ := learned(t, World{Start: both, Quiet: time.Minute}, func(s *Scenario) {
		token(s, "1")
		applyOne(s)
	})
	r, err := x.run(Plan{{Kind: LoseLease, At: 1}}, x.expect, 0)
	if err != nil || r.problem != nil {
		t.Fatal(err, r.problem)
	}
	for _, writes := range x.expect.withoutLease {
		if !writes["create secrets default"] {
			t.Errorf("without the Lease, the program sends %v", writes)
		}
	}
	if story := Story(r.story).String(); !strings.Contains(story, "another identity takes the Lease") {
		t.Error(story)
	}
}
