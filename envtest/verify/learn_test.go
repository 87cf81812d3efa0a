package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/envtest"
)

// A Settle lets the program run also if the step before it wrote nothing.
func TestSettleWithoutWrites(t *testing.T) {
	start := reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Data["late"] == "" && time.Since(m.CreationTimestamp.Time) < 25*time.Minute {
			return ctrl.Result{RequeueAfter: 25 * time.Minute}, nil
		}
		return ctrl.Result{}, set(ctx, c, m, "late", "yes")
	}).start
	r := Explore(t, World{Start: start, Plans: 1}, func(s *Scenario) {
		applyOne(s) // 20 minutes without faults
		s.Settle()
	})
	if len(r.Writes) != 1 {
		t.Errorf("the writes are %q", r.Writes)
	}
}

func emptyState() *State {
	return &State{objects: map[identity]*unstructured.Unstructured{}, names: map[identity]string{}}
}

func bareObject(apiVersion, kind, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName(name)
	return u
}

// Two objects with one kind and name in different groups count both.
func TestKindInTwoGroups(t *testing.T) {
	s, of := emptyState(), "serving.example.com/v1"
	base := s.clone()
	s.put(bareObject("v1", "Service", "x"))
	s.put(bareObject(of, "Service", "x"))
	before := s.end(base, nil)
	other := bareObject(of, "Service", "x")
	other.Object["spec"] = "new"
	s.put(other)
	all := compareEnds(before, s.end(base, nil))
	if want := `Service.serving.example.com x: spec is "new"; without faults it is missing`; all.String() != want || all[0].field != "Service.spec" {
		t.Errorf("%s, want %s", all, want)
	}
	delete(s.objects, identityOf(other))
	if want := "Service.serving.example.com x is missing"; compareEnds(before, s.end(base, nil)).String() != want {
		t.Errorf("%s, want %s", compareEnds(before, s.end(base, nil)), want)
	}
}

// Changes of one object come in any order, and the last one wins.
func TestOrderOfChanges(t *testing.T) {
	s := emptyState()
	one := func(revision int64) *unstructured.Unstructured {
		u := bareObject("v1", "ConfigMap", "m")
		u.SetResourceVersion(fmt.Sprint(revision))
		return u
	}
	s.apply(envtest.Change{Revision: 5, After: one(5)})
	s.apply(envtest.Change{Revision: 4, After: one(4)})
	if is := s.objects[identityOf(one(5))]; is == nil || is.GetResourceVersion() != "5" {
		t.Error(is)
	}
	s.apply(envtest.Change{Revision: 7, Before: one(6)})
	s.apply(envtest.Change{Revision: 6, After: one(6)})
	if len(s.objects) > 0 {
		t.Error(s.objects)
	}
}

// A scenario must have the same number of steps in each run.
func TestVaryingSettles(t *testing.T) {
	number := 0
	_, err := explore(context.Background(), World{Start: reconciler(named).start}, func(s *Scenario) {
		applyOne(s)
		if number++; number == 2 {
			s.Settle()
		}
	}, bubble{t})
	if err == nil || !strings.Contains(err.Error(), "the scenario calls Settle 2 times in one run and 3 times in another") {
		t.Error(err)
	}
}

// The middle of a long story has its faults.
func TestLongStory(t *testing.T) {
	s := make(Story, 400)
	for i := range s {
		s[i] = Line{Actor: "program", Text: fmt.Sprint("line ", i)}
	}
	s[200].Actor = "fault"
	text := s.String()
	for line, kept := range map[int]bool{99: true, 150: false, 194: false, 195: true, 200: true, 205: true, 206: false, 399: true} {
		if strings.Contains(text, fmt.Sprintf("line %d\n", line)) != kept {
			t.Errorf("line %d: %v\n%s", line, !kept, text)
		}
	}
	if !strings.Contains(text, " 95 lines left out") || !strings.Contains(text, " 174 lines left out") {
		t.Error(text)
	}
}

// An object whose name contains a generated one counts: a claim of a StatefulSet has the name of its Pod in its own.
func TestNamesWithGeneratedParts(t *testing.T) {
	s := emptyState()
	add := func(kind, name, generateName string) {
		u := bareObject("v1", kind, name)
		u.SetGenerateName(generateName)
		s.put(u)
	}
	base := s.clone()
	for _, name := range []string{"m-bbbbb", "m-ccccc"} {
		add("Secret", name, "m-")
		add("ConfigMap", "of-"+name, "")
	}
	got := slices.Sorted(maps.Keys(s.end(base, nil)))
	if want := "[ConfigMap of-m-*#1 ConfigMap of-m-*#2 Secret m-*#1 Secret m-*#2]"; fmt.Sprint(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// Others runs beside the program, and no fault affects it.
func TestOthers(t *testing.T) {
	ready := reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		return ctrl.Result{}, set(ctx, c, m, "ready", "yes")
	}).start
	start := reconciler(func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
		if m.Data["ready"] == "" {
			return ctrl.Result{}, nil
		}
		return named(ctx, c, m)
	}).start
	r := Explore(t, World{Start: start, Plans: 20, Others: []func(context.Context, *rest.Config) error{ready}}, applyOne)
	if len(r.Findings) > 0 || len(r.Writes) != 1 || r.Writes[0] != "create secrets default" {
		t.Errorf("%q, %v", r.Writes, r.Findings)
	}
}

// A panic in the goroutine of Start is one of the program.
func TestPanicInStart(t *testing.T) {
	r := Explore(t, World{Start: func(context.Context, *rest.Config) error { panic("no flags") }}, applyOne)
	if len(r.Findings) != 1 || r.Findings[0].Kind != Panics || r.Findings[0].Text != "no flags" {
		t.Errorf("%v", r.Findings)
	}
}

// Goroutines that outlive the program do not delay the test.
func TestLeak(t *testing.T) {
	start := reconciler(named).start
	leaking := func(ctx context.Context, c *rest.Config) error {
		go func() { <-make(chan struct{}) }()
		go func() {
			for range time.Tick(time.Second) {
			}
		}()
		return start(ctx, c)
	}
	r := Explore(t, World{Start: leaking, Plans: 5}, applyOne)
	if len(r.Findings) > 0 || r.Plans != 5 || len(r.Writes) != 1 {
		t.Errorf("%d plans for %d writes: %v", r.Plans, len(r.Writes), r.Findings)
	}
}

// A scenario that fails without faults is an error of the test; one that fails because the user did not
// wait is none.
func TestHastyUser(t *testing.T) {
	r := Explore(t, World{Start: reconciler(named).start, Plan: "hurry:1"}, func(s *Scenario) {
		applyOne(s)
		s.Do("reads the Secret", func(ctx context.Context) error {
			return s.Get(ctx, client.ObjectKeyFromObject(configMap("m", nil)), &corev1.Secret{})
		})
	})
	if len(r.Findings) > 0 || r.Plans != attempts {
		t.Errorf("%d plans, %v", r.Plans, r.Findings)
	}
}

// Conditions and other lists of named items are compared by their names.
func TestCompareLists(t *testing.T) {
	list := func(pairs ...string) map[string]any {
		var items []any
		for i := 0; i < len(pairs); i += 2 {
			items = append(items, map[string]any{"type": pairs[i], "status": pairs[i+1]})
		}
		return map[string]any{"conditions": items}
	}
	for _, c := range []struct {
		want, is map[string]any
		text     string
	}{
		{list("A", "1", "B", "2"), list("B", "2", "A", "1"), ""},
		{list("A", "1", "B", "2"), list("B", "3", "A", "1"), `m: conditions[B].status is "3"; without faults it is "2"`},
		{list("A", "1", "B", "2"), list("A", "1"), `m: conditions[B] is missing; without faults it is {"status":"2","type":"B"}`},
		{list("A", "1", "A", "2"), list("A", "1", "A", "3"), `m: conditions[].status is "3"; without faults it is "2"`},
	} {
		var all differences
		compareValues(difference{"m", "K", c.want, c.is}, &all)
		if all.String() != c.text {
			t.Errorf("%v and %v: %q", c.want, c.is, all.String())
		}
	}
}

// A State lists kinds of the scheme also as unstructured objects.
func TestStateList(t *testing.T) {
	s := &State{scheme: (&World{}).scheme(), objects: map[identity]*object{}, names: map[identity]string{}}
	for i := range 3 {
		u := &object{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
		u.SetNamespace(fmt.Sprint("n", i%2))
		u.SetName(fmt.Sprint("p", i))
		s.put(u)
	}
	var typed corev1.PodList
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("v1")
	list.SetKind("PodList")
	if err := errors.Join(s.List(&typed), s.List(list, client.InNamespace("n0"))); err != nil {
		t.Fatal(err)
	}
	if len(typed.Items) != 3 || len(list.Items) != 2 || list.Items[1].GetName() != "p2" {
		t.Errorf("%v, %v", typed.Items, list.Items)
	}
	var pod corev1.Pod
	if err := s.Get(client.ObjectKey{Namespace: "n1", Name: "p2"}, &pod); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("a Pod of another namespace: %v", err)
	}
}

// Two invariants that fail for different reasons are two findings, and numbers do not count.
func TestSignatures(t *testing.T) {
	r := &run{state: &State{}}
	signature := func(text string) string {
		r.problem = nil
		r.broken(check{name: "c"}, "at the end", errors.New(text))
		return r.problem.signature
	}
	if a, b := signature("3 Pods"), signature("4 Pods"); a != b {
		t.Errorf("%q and %q", a, b)
	}
	if a, b := signature("no Pods"), signature("no Services"); a == b || !strings.HasPrefix(a, "c: ") {
		t.Errorf("%q and %q", a, b)
	}
}

// The kubelet makes Pods ready, completes them, and removes deleted ones.
func TestKubelet(t *testing.T) {
	pod := func(name string, policy corev1.RestartPolicy) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{
			RestartPolicy: policy, Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}},
		}}
	}
	phase := func(s *State, name string) corev1.PodPhase {
		var p corev1.Pod
		_ = s.Get(client.ObjectKey{Namespace: "default", Name: name}, &p)
		return p.Status.Phase
	}
	idle := func(ctx context.Context, _ *rest.Config) error { <-ctx.Done(); return nil }
	r := Explore(t, World{Start: idle, Kubelet: true, Plans: 1}, func(s *Scenario) {
		s.Apply(pod("web", corev1.RestartPolicyAlways), pod("job", corev1.RestartPolicyNever), pod("gone", corev1.RestartPolicyAlways))
		s.Settle()
		s.Delete(pod("gone", ""))
		s.Finally("phases", func(state *State) error {
			if web, job, gone := phase(state, "web"), phase(state, "job"), phase(state, "gone"); web != "Running" || job != "Succeeded" || gone != "" {
				return fmt.Errorf("web is %s, job is %s, gone is %s", web, job, gone)
			}
			return nil
		})
	})
	if len(r.Findings) > 0 {
		t.Error(r.Findings)
	}
}
