package clients

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// One of three candidates leads at a time; when it leaves, another one takes over.
func TestLeaderElection(t *testing.T) { eachEncoding(t, testLeaderElection) }

func testLeaderElection(t *testing.T, client kubernetes.Interface) {
	ctx := within(t)
	const candidates = 3
	var leading sync.Mutex
	began := make(chan int)
	ends := make([]context.CancelFunc, candidates)
	var group sync.WaitGroup
	defer group.Wait()
	for i := range candidates {
		own, cancel := context.WithCancel(ctx)
		defer cancel()
		ends[i] = cancel
		name := fmt.Sprintf("candidate-%d", i)
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "kube-system", "leader",
			client.CoreV1(), client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		if err != nil {
			t.Fatal(err)
		}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, Name: name, ReleaseOnCancel: true,
			LeaseDuration: 30 * time.Second, RenewDeadline: 20 * time.Second, RetryPeriod: 20 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					if !leading.TryLock() {
						t.Errorf("%s leads beside another", name)
						return
					}
					defer leading.Unlock()
					began <- i
					<-ctx.Done()
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		group.Go(func() { elector.Run(own) })
	}
	led := map[int]bool{}
	for range candidates {
		i := receive(ctx, t, began, "a leader")
		if led[i] {
			t.Errorf("candidate %d leads again", i)
		}
		led[i] = true
		lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "leader", metav1.GetOptions{})
		if err != nil || *lease.Spec.HolderIdentity != fmt.Sprintf("candidate-%d", i) {
			t.Errorf("candidate %d leads, the lease says %s, %v", i, text(lease), err)
		}
		ends[i]()
	}
}
