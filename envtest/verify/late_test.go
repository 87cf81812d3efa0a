package verify

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// onlyBy explores a planted bug with plans of one fault. Each Finding must have one of the kinds, and no other one.
func onlyBy(t *testing.T, w World, play func(*Scenario), kinds ...FaultKind) {
	t.Helper()
	w.Plans, w.Time, w.Findings = 80, 2*time.Minute, 5
	r := Explore(t, w, play)
	for _, f := range r.Findings {
		if len(f.Plan) == 0 || f.Shown == 0 || slices.ContainsFunc(f.Plan, func(x Fault) bool { return !slices.Contains(kinds, x.Kind) }) {
			t.Error(f)
		}
	}
	if len(r.Findings) == 0 {
		t.Errorf("no findings in %d plans for %q", r.Plans, r.Writes)
	}
	t.Logf("%d plans for %d writes, %d findings", r.Plans, len(r.Writes), len(r.Findings))
}

// harmless runs each plan with one fault of a kind. The program is correct.
func harmless(t *testing.T, w World, play func(*Scenario), kind FaultKind) {
	t.Helper()
	x, all := learned(t, w, play)
	all = slices.DeleteFunc(all, func(p Plan) bool { return len(p) != 1 || p[0].Kind != kind })
	for _, p := range all {
		r, err := x.run(p, x.expect, 0)
		if err != nil {
			t.Fatal(err)
		}
		if r.problem != nil {
			t.Errorf("%s: %s\n%s", p, r.problem.Text, Story(r.story))
		}
	}
	if len(all) == 0 {
		t.Errorf("no plan with %s", kind)
	}
}

// impatient creates a Secret for a ConfigMap. It gives up for good if that is not done after half an hour.
func impatient(givesUp bool) reconciler {
	return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Data["state"] != "" || m.DeletionTimestamp != nil {
			return ctrl.Result{}, nil
		}
		since, err := strconv.ParseInt(m.Data["since"], 10, 64)
		if err != nil {
			return ctrl.Result{}, set(ctx, c, m, "since", strconv.FormatInt(time.Now().Unix(), 10))
		}
		s := secret(m, m.Name)
		switch err := c.Get(ctx, client.ObjectKeyFromObject(s), s); {
		case err == nil:
			return ctrl.Result{}, set(ctx, c, m, "state", "done")
		case !apierrors.IsNotFound(err):
			return ctrl.Result{}, err
		case givesUp && time.Since(time.Unix(since, 0)) > 30*time.Minute:
			return ctrl.Result{}, set(ctx, c, m, "state", "failed")
		}
		return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, owned(c, m, secret(m, m.Name))))
	}
}

// A controller that gives up after a time is found if it is suspended.
func TestPause(t *testing.T) {
	onlyBy(t, World{Start: impatient(true).start}, resize, Pause)
	harmless(t, World{Start: impatient(false).start}, resize, Pause)
}

// untilDone calls f each second until it returns no error.
func untilDone(ctx context.Context, f func(context.Context) error) {
	_ = wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) { return f(ctx) == nil, nil })
}

// disordered copies the size to a Secret. It sends each size once for each life, and does not wait for the responses.
func disordered() reconciler {
	var mu sync.Mutex
	sent := map[string]string{}
	return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		if sent[m.Name] == m.Data["size"] {
			return ctrl.Result{}, nil
		}
		sent[m.Name] = m.Data["size"]
		go func() {
			untilDone(ctx, func(ctx context.Context) error {
				_, err := named(context.WithoutCancel(ctx), c, m)
				return err
			})
		}()
		return ctrl.Result{}, nil
	}
}

// A controller that does not wait for its writes is found by a slow one: the write of an old value comes last.
func TestSlow(t *testing.T) {
	play := func(s *Scenario) {
		applyOne(s)
		s.Apply(configMap("m", map[string]string{"size": "4"}))
		s.Settle()
		s.Apply(configMap("m", map[string]string{"size": "5"}))
		s.Settle()
	}
	bug := planted{life: disordered}
	onlyBy(t, World{Start: bug.start}, play, Slow)
	harmless(t, World{Start: reconciler(named).start}, play, Slow)
}

// forgetful notes the size that it has sent when a response comes.
func forgetful() reconciler {
	var mu sync.Mutex
	sent := map[string]string{}
	return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		mu.Lock()
		defer mu.Unlock()
		size, s := m.Data["size"], owned(c, m, secret(m, m.Name))
		if sent[m.Name] == size {
			return ctrl.Result{}, nil
		}
		s.Data = map[string][]byte{"size": []byte(size)}
		s.ManagedFields = nil
		s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		go func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Hour)
			defer cancel()
			untilDone(ctx, func(ctx context.Context) error {
				//lint:ignore SA1019 the typed object is at hand
				return c.Patch(ctx, s, client.Apply, client.FieldOwner("maps"), client.ForceOwnership)
			})
			mu.Lock()
			defer mu.Unlock()
			sent[m.Name] = size
		}()
		return ctrl.Result{}, nil
	}
}

// A late response overwrites newer knowledge of the program.
func TestSlowResponse(t *testing.T) {
	play := func(s *Scenario) {
		applyOne(s)
		for _, size := range []string{"5", "3"} {
			s.Apply(configMap("m", map[string]string{"size": size}))
			s.Settle()
		}
	}
	bug := planted{life: forgetful}
	for start, want := range map[string]int{"slow-response:1": 1, "crash-after:1": 0, "lose-response:1": 0, "fail:1": 0, "hurry:1": 0, "stall:configmaps:2": 0} {
		if r := Explore(t, World{Start: bug.start, Plan: start}, play); len(r.Findings) != want {
			t.Errorf("%s: %v", start, r.Findings)
		}
	}
	if r := Explore(t, World{Start: reconciler(named).start, Plan: "slow-response:1"}, play); len(r.Findings) > 0 {
		t.Error(r.Findings)
	}
}

// A late write of a client with a timeout has no effect. A late response finds no client.
func TestSlowWithTimeout(t *testing.T) {
	start := func(ctx context.Context, c *rest.Config) error {
		c = rest.CopyConfig(c)
		c.Timeout = 15 * time.Second
		return reconciler(children).start(ctx, c)
	}
	for _, plan := range []string{"slow:1", "slow:2", "slow-response:2", "slow:1 slow-response:3", "slow:2 crash-before:3", "pause:2 slow:3"} {
		if r := Explore(t, World{Start: start, Plan: plan}, grow); len(r.Findings) > 0 {
			t.Error(r.Findings)
		}
	}
}
