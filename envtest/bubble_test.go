package envtest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// inBubble runs a test with a server in memory in a bubble, where only the test makes time pass.
func inBubble(t *testing.T, e *Environment, test func(t *testing.T, config *rest.Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e.InMemory = true
		test(t, e.StartFor(t))
	})
}

// An event expires after an hour.
func TestEventsExpireInFakeTime(t *testing.T) {
	t.Parallel()
	inBubble(t, &Environment{}, func(t *testing.T, config *rest.Config) {
		c := clientOf(t, config)
		event := &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: "default", Name: "e"},
			InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "p"},
		}
		if err := c.Create(t.Context(), event); err != nil {
			t.Fatal(err)
		}
		time.Sleep(59 * time.Minute)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(event), event); err != nil {
			t.Errorf("after 59 minutes: %v", err)
		}
		time.Sleep(6 * time.Minute)
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(event), event); !apierrors.IsNotFound(err) {
			t.Errorf("after 65 minutes: %v", err)
		}
	})
}

// The token of a service account expires at the requested time.
func TestTokensExpireInFakeTime(t *testing.T) {
	t.Parallel()
	inBubble(t, &Environment{}, func(t *testing.T, config *rest.Config) {
		c, ctx := clientOf(t, config), t.Context()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "robot"}}
		if err := c.Create(ctx, account); err != nil {
			t.Fatal(err)
		}
		seconds := int64(600)
		token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
		if err := c.SubResource("token").Create(ctx, account, token); err != nil {
			t.Fatal(err)
		}
		robot := rest.AnonymousClientConfig(config)
		robot.BearerToken, robot.Dial = token.Status.Token, config.Dial
		known := func() error {
			return clientOf(t, robot).Create(ctx, &authenticationv1.SelfSubjectReview{})
		}
		if err := known(); err != nil {
			t.Errorf("at first: %v", err)
		}
		time.Sleep(9 * time.Minute)
		if err := known(); err != nil {
			t.Errorf("after 9 minutes: %v", err)
		}
		time.Sleep(3 * time.Minute) // as in Kubernetes, clocks may differ by a minute
		if err := known(); !apierrors.IsUnauthorized(err) {
			t.Errorf("after 12 minutes: %v", err)
		}
	})
}

// A disconnected leader stops when its lease expires, and another candidate leads.
func TestLeasesRunOutInFakeTime(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	inBubble(t, e, func(t *testing.T, config *rest.Config) {
		began := time.Now()
		led := map[string]time.Duration{}
		elect := func(ctx context.Context, name string) {
			user, err := e.AddUser(User{Name: name, Groups: []string{"system:masters"}}, nil)
			if err != nil {
				t.Error(err)
				return
			}
			clients := kubernetes.NewForConfigOrDie(user.Config())
			leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
				Lock: &resourcelock.LeaseLock{
					LeaseMeta: metav1.ObjectMeta{Namespace: "default", Name: "leader"}, Client: clients.CoordinationV1(),
					LockConfig: resourcelock.ResourceLockConfig{Identity: name},
				},
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
				Callbacks: leaderelection.LeaderCallbacks{
					OnStartedLeading: func(context.Context) { led[name] = time.Since(began) },
					OnStoppedLeading: func() {},
				},
			})
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go elect(ctx, "first")
		time.Sleep(time.Minute)
		go elect(ctx, "second")
		time.Sleep(time.Minute)
		e.Inject(Fault{Requests: Requests{User: "first"}, Times: Always, Effect: HangUp()})
		time.Sleep(time.Minute)
		synctest.Wait()
		if at, ok := led["first"]; !ok || at > 5*time.Second {
			t.Errorf("the first leads at %v", at)
		}
		// A candidate checks every 4.4 s at the latest, observes a last renewal, and waits for 15 s
		// from then on.
		if at, ok := led["second"]; !ok || at < 2*time.Minute || at > 2*time.Minute+25*time.Second {
			t.Errorf("the second leads at %v", at)
		}
		var lease coordinationv1.Lease
		if err := clientOf(t, config).Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "leader"}, &lease); err != nil || *lease.Spec.HolderIdentity != "second" {
			t.Errorf("%+v, %v", lease.Spec, err)
		}
		cancel()
	})
}
