package verify

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/envtest"
)

// A Report is the result of all runs.
type Report struct {
	// Plans is the number of runs with faults.
	Plans int
	// Writes is the number of writes of the program in a run without faults.
	Writes int
	// Findings are the distinct problems.
	Findings []Finding
}

// A Finding is a problem with the smallest plan that shows it.
type Finding struct {
	Problem
	Plan  Plan
	Story Story
}

// String tells what happened, and how to repeat it.
func (f Finding) String() string {
	return fmt.Sprintf("%s, with the plan %q:\n%s\n\n%s", f.Kind, f.Plan, f.Text, f.Story)
}

// Run runs the scenario without faults, makes plans from what the program does, and runs it with each of
// them. The test fails with the problems that it finds.
func Run(t *testing.T, w World, scenario func(*Scenario)) {
	t.Helper()
	report := Explore(t, w, scenario)
	for _, f := range report.Findings {
		t.Error(f)
	}
	t.Logf("%d plans, %d writes", report.Plans, report.Writes)
}

// Explore is Run without a failure of the test.
func Explore(t *testing.T, w World, scenario func(*Scenario)) *Report {
	t.Helper()
	x := &explorer{t: t, world: &w, scenario: scenario, report: &Report{}}
	if err := x.explore(); err != nil {
		t.Fatalf("verify: %v", err)
	}
	return x.report
}

type explorer struct {
	t        *testing.T
	world    *World
	scenario func(*Scenario)
	prepared *envtest.Snapshot
	expect   *expectation
	report   *Report
	random   *rand.Rand
	end      time.Time
	found    map[string]bool
}

func (x *explorer) explore() error {
	defer withoutBackoff()()
	defer repeatable(x.t)()
	w := x.world
	x.end = time.Now().Add(w.time())
	x.random = rand.New(rand.NewPCG(w.Seed, 1))
	x.found = map[string]bool{}
	if err := x.prepare(); err != nil {
		return err
	}
	learnt, err := x.learn()
	if err != nil {
		return err
	}
	x.report.Writes = learnt.writes
	if text := orDefault(os.Getenv("VERIFY_PLAN"), w.Plan); text != "" {
		p, err := ParsePlan(text)
		if err != nil {
			return err
		}
		_, err = x.try(p)
		return err
	}
	for _, p := range plans(learnt) {
		if x.report.Plans >= w.plans() || time.Now().After(x.end) {
			break
		}
		if _, err := x.try(p); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the state that all runs start from.
func (x *explorer) prepare() (err error) {
	synctest.Test(x.t, func(t *testing.T) {
		e := &envtest.Environment{
			InMemory: true, Controllers: x.world.controllers(),
			CRDs: x.world.CRDs, CRDDirectoryPaths: x.world.CRDDirectoryPaths, ErrorIfCRDPathMissing: true,
		}
		if _, err = e.Start(); err == nil {
			err = e.WaitIdle(t.Context())
		}
		if err == nil {
			x.prepared, err = e.Snapshot()
		}
		err = errors.Join(err, e.Stop())
	})
	return err
}

// learn runs the scenario a few times without faults. Values that differ between these runs may differ in
// others, too.
func (x *explorer) learn() (*run, error) {
	x.expect = &expectation{vary: map[string]bool{}}
	for _, field := range x.world.Ignore {
		x.expect.vary[field] = true
	}
	var first *run
	for range faultless {
		r, err := x.run(nil, nil)
		if err != nil {
			return nil, err
		}
		if r.problem != nil {
			return nil, fmt.Errorf("without faults: %s: %s\n\n%s", r.problem.Kind, r.problem.Text, Story(r.story))
		}
		if first == nil {
			first = r
		}
		x.expect.learn(r.ends, r.steps)
	}
	return first, nil
}

// faultless is the number of runs without faults.
const faultless = 3

// run executes one plan in a bubble of its own.
func (x *explorer) run(p Plan, expect *expectation) (r *run, err error) {
	r = &run{world: x.world, plan: p, expect: expect}
	synctest.Test(x.t, func(t *testing.T) {
		seedRandom(t, x.world.Seed)
		err = r.execute(x.prepared, x.scenario)
	})
	return r, err
}

// try runs a plan, and adds the problem that it shows.
func (x *explorer) try(p Plan) (*run, error) {
	x.report.Plans++
	r, err := x.run(p, x.expect)
	if err != nil || r.problem == nil {
		return r, err
	}
	if r.problem.Kind == Scene {
		return r, fmt.Errorf("with the plan %q: %s\n\n%s", p, r.problem.Text, Story(r.story))
	}
	what := string(r.problem.Kind) + r.problem.Text
	if !x.found[what] {
		x.found[what] = true
		x.report.Findings = append(x.report.Findings, Finding{*r.problem, p, r.story})
	}
	return r, nil
}

// plans returns the plans with one fault each, for what a run did.
func plans(r *run) (all []Plan) {
	for n, write := range r.written {
		kinds := []FaultKind{CrashAfter, CrashBefore, LoseResponse, Fail}
		if strings.HasPrefix(write, "update ") {
			kinds = append(kinds, Conflict)
		}
		kinds = append(kinds, Partition)
		if r.lists {
			kinds = append(kinds, StaleRestart)
		}
		for _, k := range kinds {
			all = append(all, Plan{{Kind: k, At: n + 1}})
		}
	}
	var resources []string
	for resource := range r.events {
		resources = append(resources, resource)
	}
	slices.Sort(resources)
	for _, resource := range resources {
		for n := range r.events[resource] {
			all = append(all, Plan{{Kind: Hold, Resource: resource, At: n + 1}}, Plan{{Kind: Relist, Resource: resource, At: n + 1}})
		}
	}
	for seed := range 10 {
		all = append(all, Plan{{Kind: Shuffle, At: seed + 3}})
	}
	return all
}

func (r *run) gvk(o client.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, r.world.scheme())
}
