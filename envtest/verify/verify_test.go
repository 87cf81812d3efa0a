package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/internal/object/request"
)

// A controller that counts in its cache creates too many objects. The plan that shows it has one fault, and
// its story tells the fault and the writes after it.
func TestStaleCount(t *testing.T) {
	r := Explore(t, World{Start: reconciler(three).start, Plans: 60, Findings: 1}, applyOne)
	if len(r.Findings) != 1 || len(r.Writes) < 3 {
		t.Fatalf("%d findings for %d writes, in %d plans", len(r.Findings), len(r.Writes), r.Plans)
	}
	f := r.Findings[0]
	story := f.Story.String()
	if f.Kind != Different || len(f.Plan) != 1 || f.Shown != repeats ||
		!strings.Contains(f.Text, "of Secret default/m-*; without faults 3") ||
		!strings.Contains(story, "fault") || strings.Count(story, "writes Secret default/m-") < 4 {
		t.Error(f)
	}
	again := Explore(t, World{Start: reconciler(three).start, Plan: f.Plan.String()}, applyOne)
	if len(again.Findings) != 1 || again.Findings[0].Story.String() != story {
		t.Errorf("the plan alone: %v", again.Findings)
	}
}

// After a restart, a list of a server that lags behind can be older than the last write of the program. A
// watch that begins with a list is never old.
func TestStaleRestart(t *testing.T) {
	for _, without := range []bool{true, false} {
		r := Explore(t, World{Start: reconciler(three).start, Plan: "stale-restart:2", WithoutWatchList: without}, applyOne)
		if found := len(r.Findings) > 0; found != without {
			t.Errorf("without watches that begin with a list: %v: %v", without, r.Findings)
		}
	}
}

// No plan is run twice, and exploration ends when none is left.
func TestExhausted(t *testing.T) {
	tried := map[string]int{}
	r := Explore(t, World{
		Start: reconciler(named).start, Faults: []FaultKind{CrashBefore, CrashAfter, Fail, LoseResponse}, Plans: 1000, Time: 5 * time.Minute,
		Progress: func(o Outcome) {
			if len(o.Plan) > 0 {
				names := strings.Fields(o.Plan.String())
				slices.Sort(names)
				tried[strings.Join(names, " ")]++
			}
		},
	}, func(s *Scenario) {
		applyOne(s)
		s.Apply(configMap("m", map[string]string{"size": "4"}))
	})
	if !r.Exhausted || len(r.Findings) > 0 || r.Plans <= 4*len(r.Writes) || len(tried) != r.Plans {
		t.Errorf("exhausted: %v, after %d plans, %d of them different; %v", r.Exhausted, r.Plans, len(tried), r.Findings)
	}
}

// Informers draw the time at which a watch ends in the order of their goroutines. The run does not depend on it.
func TestWatchTimeout(t *testing.T) {
	timeout := func(query string) string {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/secrets?watch=true&"+query, nil)
		newGate().hold(r, request.Info{IsResource: true, Verb: "watch"})
		return r.URL.Query().Get("timeoutSeconds")
	}
	one, other, short := timeout("timeoutSeconds=300"), timeout("timeoutSeconds=599"), timeout("timeoutSeconds=2")
	if n, _ := strconv.Atoi(one); one != other || n < 300 || n >= 600 || short != "2" {
		t.Errorf("%q, %q, %q", one, other, short)
	}
}

// A fault whose write does not come has no effect, and the report has it.
func TestMissed(t *testing.T) {
	r := Explore(t, World{Start: reconciler(named).start, Plan: "crash-after:9 fail:1", Progress: func(o Outcome) {
		if len(o.Plan) > 0 && o.Missed.String() != "crash-after:9" {
			t.Errorf("missed: %q", o.Missed)
		}
	}}, applyOne)
	if r.Missed != r.Plans || r.Plans == 0 || len(r.Findings) > 0 {
		t.Error(r, r.Findings)
	}
}

// reaches rejects only faults that leave the story as it is.
func TestUnreached(t *testing.T) {
	defer bubble{t}.begin()()
	x, singles := learned(t, World{Start: reconciler(children).start}, func(s *Scenario) {
		applyOne(s)
		s.Settle()
		s.Apply(configMap("m", map[string]string{"size": "4"}))
	})
	unreached := 0
	for _, p := range singles {
		if unreached >= 20 {
			break
		}
		r := x.once(t, p)
		s := newStem(r)
		for _, f := range singles {
			if s.reaches(f[0]) || unreached >= 20 {
				continue
			}
			unreached++
			if more := x.once(t, slices.Concat(p, f)); !slices.Equal(more.story, r.story) {
				t.Errorf("with %s:\n%s\nand with %s:\n%s", p, Story(r.story), more.plan, Story(more.story))
			}
		}
	}
	if unreached == 0 {
		t.Error("each fault can be added to each plan")
	}
}

// A controller writes an Event, or reads discovery, while it holds a mutex for which a goroutine waits. client-go and
// controller-runtime do so.
func TestRequestUnderMutex(t *testing.T) {
	for name, ask := range map[string]func(context.Context, client.Client) error{
		"event": func(ctx context.Context, c client.Client) error {
			return c.Create(ctx, &corev1.Event{
				ObjectMeta:     metav1.ObjectMeta{Namespace: "default", GenerateName: "e-"},
				InvolvedObject: corev1.ObjectReference{Namespace: "default"},
			})
		},
		"discovery": func(_ context.Context, c client.Client) error {
			_, err := c.RESTMapper().RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
			return err
		},
	} {
		locked := func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			var mu sync.Mutex
			mu.Lock()
			waits := make(chan struct{})
			go func() {
				close(waits)
				mu.Lock()
				defer mu.Unlock()
			}()
			<-waits
			runtime.Gosched()
			err := ask(ctx, c)
			mu.Unlock()
			if err != nil {
				return ctrl.Result{}, err
			}
			return named(ctx, c, m)
		}
		r := Explore(t, World{Start: reconciler(locked).start, Plans: 10, Findings: 1}, applyOne)
		if r.Plans == 0 || len(r.Writes) != 1 || len(r.Findings) > 0 {
			t.Errorf("%s: %d plans for %d writes; %v", name, r.Plans, len(r.Writes), r.Findings)
		}
	}
}

// An invariant is checked in each state, also in one that a controller leaves at once.
func TestAlways(t *testing.T) {
	twoSteps := func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		var s corev1.Secret
		if err := c.Get(ctx, client.ObjectKeyFromObject(m), &s); err == nil {
			return ctrl.Result{}, nil
		}
		s.Namespace, s.Name = m.Namespace, m.Name
		if err := c.Create(ctx, &s); err != nil {
			return ctrl.Result{}, client.IgnoreAlreadyExists(err)
		}
		s.Data = map[string][]byte{"size": []byte(m.Data["size"])}
		return ctrl.Result{}, c.Update(ctx, &s)
	}
	r := Explore(t, World{Start: reconciler(twoSteps).start}, func(s *Scenario) {
		s.Always("each Secret has a size", func(state *State) error {
			var all corev1.SecretList
			if err := state.List(&all, client.InNamespace("default")); err != nil {
				return err
			}
			for _, s := range all.Items {
				if s.Data["size"] == nil {
					return fmt.Errorf("%s has none", s.Name)
				}
			}
			return nil
		})
		applyOne(s)
	})
	if len(r.Findings) != 1 || r.Findings[0].Kind != Broken || len(r.Findings[0].Plan) > 0 || !strings.Contains(r.Findings[0].Text, "each Secret has a size: m has none") {
		t.Errorf("%v", r.Findings)
	}
}

// Each kind of problem is found.
func TestProblems(t *testing.T) {
	// lives calls broken for an object that a crash has left half done.
	lives := func(broken func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error)) func(context.Context, *rest.Config) error {
		return func(ctx context.Context, c *rest.Config) error {
			return reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
				var s corev1.Secret
				if err := c.Get(ctx, client.ObjectKeyFromObject(m), &s); err == nil && s.Labels["half"] == "" {
					return ctrl.Result{}, nil
				} else if err == nil {
					return broken(ctx, c, m)
				}
				s.Namespace, s.Name, s.Labels = m.Namespace, m.Name, map[string]string{"half": "yes"}
				if err := c.Create(ctx, &s); err != nil {
					return ctrl.Result{}, err
				}
				s.Labels = nil
				return ctrl.Result{}, c.Update(ctx, &s)
			}).start(ctx, c)
		}
	}
	for name, c := range map[string]struct {
		kind  ProblemKind
		start func(context.Context, *rest.Config) error
	}{
		"panic": {Panics, lives(func(context.Context, client.Client, *corev1.ConfigMap) (ctrl.Result, error) { panic("half done") })},
		"hot loop": {Endless, lives(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			m.Data["size"] += "."
			if len(m.Data["size"]) > 40 {
				m.Data["size"] = ""
			}
			return ctrl.Result{}, c.Update(ctx, m)
		})},
		"slow loop": {Endless, lives(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			m.Data["size"] += "."
			return ctrl.Result{RequeueAfter: 5 * time.Minute}, c.Update(ctx, m)
		})},
		"stuck": {Different, lives(func(context.Context, client.Client, *corev1.ConfigMap) (ctrl.Result, error) {
			return ctrl.Result{}, errors.New("half done")
		})},
		"exit": {Exits, func(ctx context.Context, c *rest.Config) error {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			err := lives(func(context.Context, client.Client, *corev1.ConfigMap) (ctrl.Result, error) {
				cancel(errors.New("half done"))
				return ctrl.Result{}, nil
			})(ctx, c)
			return errors.Join(err, context.Cause(ctx))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && c.kind == Endless {
				t.Skip("a run is long")
			}
			r := Explore(t, World{Start: c.start, Findings: 1, Time: time.Minute}, applyOne)
			if len(r.Findings) != 1 || r.Findings[0].Kind != c.kind {
				t.Errorf("%v", r.Findings)
			}
		})
	}
}

// learned returns an explorer that has learned, and its plans.
func learned(t *testing.T, w World, play func(*Scenario)) (*explorer, []Plan) {
	t.Helper()
	w.Seed = 7
	x := &explorer{ctx: context.Background(), clock: bubble{t}, world: &w, scenario: play, report: &Report{}, seen: map[behaviour]bool{}, rare: map[string]Finding{}}
	if err := x.prepare(); err != nil {
		t.Fatal(err)
	}
	learnt, err := x.learn()
	if err != nil {
		t.Fatal(err)
	}
	return x, plans(learnt)
}

// once runs a plan.
func (x *explorer) once(t *testing.T, p Plan) *run {
	t.Helper()
	r, err := x.run(p, x.expect, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// twice runs a plan two times, and expects the same story.
func (x *explorer) twice(t *testing.T, p Plan, seed uint64) {
	t.Helper()
	x.world.Seed = seed
	if one, other := Story(x.once(t, p).story), Story(x.once(t, p).story); !slices.Equal(one, other) {
		t.Errorf("seed %d, %s:\n%s\nand:\n%s", seed, p, one, other)
	}
}

// The faults with a condition have the same story, too.
func TestSameStoryWithLease(t *testing.T) {
	defer bubble{t}.begin()()
	x, singles := learned(t, World{Start: elected(cleaned, false), Inputs: true, Quiet: time.Minute}, remove)
	kinds := map[FaultKind]bool{}
	for _, p := range singles {
		if traits[p[0].Kind].of == ofWrites {
			kinds[p[0].Kind] = true
			x.twice(t, p, 7)
		}
	}
	if !kinds[LoseLease] || !kinds[RemoveFinalizers] {
		t.Errorf("the kinds are %v", kinds)
	}
}

// Two runs with the same plan have the same story: each plan with one fault, and combinations with other seeds.
func TestSameStory(t *testing.T) {
	defer bubble{t}.begin()()
	x, singles := learned(t, World{Start: reconciler(three).start}, applyOne)
	for _, p := range singles {
		x.twice(t, p, 7)
	}
	for seed := range uint64(*seedsFlag) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := Plan{{Kind: Shuffle, At: int(seed)}}
		for range random.IntN(maxFaults) {
			p = append(p, singles[random.IntN(len(singles))]...)
		}
		x.twice(t, p, seed)
	}
}

func TestParsePlan(t *testing.T) {
	p := Plan{{Kind: CrashAfter, At: 3}, {Kind: LoseLease, At: 1}, {Kind: Hold, Resource: "gadgets.example.com", At: 2}, {Kind: Shuffle, At: 9}}
	got, err := ParsePlan(p.String())
	if err != nil || fmt.Sprint(got) != fmt.Sprint(p) {
		t.Errorf("%v, %v", got, err)
	}
	for _, wrong := range []string{"crash:1", "crash-after", "crash-after:x", "hold:1", "crash-after:pods:1", "hold:pods:1:2"} {
		if p, err := ParsePlan(wrong); err == nil {
			t.Errorf("%q is %v", wrong, p)
		}
	}
}
