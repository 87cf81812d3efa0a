package verify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/envtest"
)

// A Report is the result of all runs.
type Report struct {
	// Plans is the number of runs with faults, without those that make a plan smaller or repeat it.
	Plans int
	// Missed is the number of these plans that showed no problem and have a fault without effect: its write, event or
	// input did not come. The order of writes varies in a process of its own, and a fault can prevent the write of another one.
	Missed int
	// Writes are the writes of the program in a run without faults. The number of a fault is that of a
	// write, from 1.
	Writes []string
	// Findings are the distinct problems.
	Findings []Finding
	// Exhausted reports that no plan is left: all of one fault were run, and all that add one with an effect to a plan with
	// a new behaviour. It is false if a Finding or the budget ended the exploration, and with World.Plan.
	Exhausted bool

	alone bool // World.Plan was run
}

// A Finding is a problem with the smallest plan that shows it.
type Finding struct {
	Problem
	Plan  Plan
	Story Story
	// At is the number of the plan that showed the problem first.
	At int
	// Shown is the number of runs that showed the problem, of Repeated runs with Plan.
	Shown, Repeated int
}

// An Outcome is the result of a run.
type Outcome struct {
	// Plan is empty for a run without faults.
	Plan Plan
	// Problem is nil if the plan showed none.
	Problem *Problem
	// Missed are the faults of a plan without a problem that had no effect.
	Missed Plan
}

// Run runs the scenario without faults, makes plans from what the program does, and runs it with each of
// them. The test fails with the problems that it finds, and if there is nothing to verify: see [Report.Empty].
func Run(t *testing.T, w World, scenario func(*Scenario)) {
	t.Helper()
	report := Explore(t, w, scenario)
	for _, f := range report.Findings {
		t.Error(f)
		if len(f.Plan) > 0 {
			t.Log(f.repeat(t.Name()))
		}
	}
	if err := report.Empty(); err != nil {
		t.Error(err)
	}
	t.Log(report)
}

// Empty returns an error if the program has written nothing without faults, or if no plan was run.
func (r *Report) Empty() error {
	switch {
	case len(r.Findings) > 0:
		return nil
	case len(r.Writes) == 0:
		return errors.New("the program has written nothing: does it watch the objects of the scenario, and may it write?")
	case r.Plans == 0:
		return errors.New("no plan was run")
	}
	return nil
}

// String returns a line with the numbers of plans, writes and findings.
func (r *Report) String() string {
	text := fmt.Sprintf("%d plans for %d writes, %d findings", r.Plans, len(r.Writes), len(r.Findings))
	if r.Missed > 0 {
		text += fmt.Sprintf("; %d plans with a fault without effect", r.Missed)
	}
	switch {
	case r.Exhausted:
		text += "; no plan is left"
	case len(r.Findings) == 0 && !r.alone:
		text += "; more plans are left"
	}
	return text
}

// Explore is Run, and returns the problems instead of failing the test.
func Explore(t *testing.T, w World, scenario func(*Scenario)) *Report {
	t.Helper()
	ctx, c := context.Background(), clock(bubble{t})
	if len(w.Command) > 0 {
		ctx, c = t.Context(), realTime{}
	}
	report, err := explore(ctx, w, scenario, c)
	if err != nil {
		t.Fatalf("verify: %v", err)
	}
	return report
}

// ExploreCommand is Explore for World.Command, outside of a test. It needs no bubble, so the program can be written in any
// language. In real time a run takes seconds, and the order of requests is that of the machine.
//
// Durations of faults follow World.Quiet: a Stall takes 10 times as long, a Pause 5 times, a Partition and a Slow 3
// times, a SlowResponse as well, and a Hold 2 times. A LoseLease takes four durations of the Lease. A state other than the expected
// one is an end after 10 times as long, and not before the longest Lease of the program has ended.
//
// With an error, the Report has the findings so far.
func ExploreCommand(ctx context.Context, w World, scenario func(*Scenario)) (*Report, error) {
	if len(w.Command) == 0 {
		return nil, errors.New("World.Command is empty")
	}
	return explore(ctx, w, scenario, realTime{})
}

func explore(ctx context.Context, w World, scenario func(*Scenario), c clock) (*Report, error) {
	if (w.Start == nil) == (len(w.Command) == 0) {
		return nil, errors.New("a World has either Start or Command")
	}
	x := &explorer{
		ctx: ctx, clock: c, world: &w, scenario: scenario, report: &Report{},
		found: map[string]bool{}, rare: map[string]Finding{}, seen: map[behaviour]bool{}, tried: map[string]bool{},
	}
	err := x.explore()
	for _, key := range slices.Sorted(maps.Keys(x.rare)) {
		x.report.Findings = append(x.report.Findings, x.rare[key])
	}
	return x.report, err
}

const (
	// faultless is the number of runs without faults.
	faultless = 3
	// repeats is the number of runs that confirm a finding.
	repeats = 3
	// maxFaults is the number of faults of a plan.
	maxFaults = 3
	// maxRare is the number of problems that may be hard to repeat.
	maxRare = 10
	// attempts is the number of runs of World.Plan in which the problem must show.
	attempts = 10
)

// An explorer makes the plans and runs them.
type explorer struct {
	ctx      context.Context
	clock    clock
	world    *World
	scenario func(*Scenario)
	prepared *envtest.Snapshot
	expect   *expectation
	report   *Report
	random   *rand.Rand
	end      time.Time
	found    map[string]bool // keys of Findings
	seen     map[behaviour]bool
	rare     map[string]Finding // problems that no repeated run showed
	stems    []stem             // plans that showed a new behaviour and no problem
	tried    map[string]bool    // combined plans
}

// A stem is a plan to which faults are added: those of the single plans in their order, beginning at index from. The number
// of single plans that were considered is next.
type stem struct {
	plan       Plan
	writes     int            // of its run
	events     map[string]int // of its run, by resource
	from, next int
}

func newStem(r *run) stem {
	s := stem{plan: r.plan, writes: len(r.written), events: map[string]int{}}
	for resource, events := range r.events {
		s.events[resource] = len(events)
	}
	return s
}

// reaches reports whether a fault that is added to the plan can have an effect. Until the added fault, the run equals that of the
// stem.
func (s *stem) reaches(f Fault) bool {
	switch traits[f.Kind].of {
	case ofWrites:
		return f.At <= s.writes
	case ofEvents:
		return f.At <= s.events[f.Resource]+1 // one more can be held
	}
	return true
}

func (x *explorer) explore() error {
	defer x.clock.begin()()
	w := x.world
	only, err := ParsePlan(orDefault(os.Getenv("VERIFY_PLAN"), w.Plan))
	if err != nil {
		return err
	}
	x.random = rand.New(rand.NewPCG(w.Seed, 1))
	if err := x.prepare(); err != nil {
		return err
	}
	learnt, err := x.learn()
	if err != nil || learnt == nil {
		return err
	}
	x.report.Writes = learnt.written
	x.end = time.Now().Add(orDefault(w.Time, x.clock.durations(w.Quiet).all))
	if len(only) > 0 {
		return x.only(only)
	}
	singles := plans(learnt)
	x.random.Shuffle(len(singles), func(i, j int) { singles[i], singles[j] = singles[j], singles[i] })
	slices.SortStableFunc(singles, func(a, b Plan) int { return cmp.Compare(x.expect.repetition(a[0]), x.expect.repetition(b[0])) })
	for _, p := range singles {
		if x.over() {
			return nil
		}
		if err := x.try(p); err != nil {
			return err
		}
	}
	for len(x.report.Findings) == 0 {
		p := x.combination(singles)
		if p == nil {
			x.report.Exhausted = true
			return nil
		}
		if x.over() {
			return nil
		}
		if err := x.try(p); err != nil {
			return err
		}
	}
	return nil
}

// combination returns a plan that adds a fault to a random stem and was not tried, or nil.
func (x *explorer) combination(singles []Plan) Plan {
	for len(x.stems) > 0 {
		i := x.random.IntN(len(x.stems))
		s := &x.stems[i]
		if s.next == 0 && len(singles) > 0 {
			s.from = x.random.IntN(len(singles))
		}
		if s.next == len(singles) {
			x.stems = slices.Delete(x.stems, i, i+1)
			continue
		}
		added := singles[(s.from+s.next)%len(singles)]
		s.next++
		if x.clock.inMemory() && !s.reaches(added[0]) {
			continue
		}
		p := slices.Concat(s.plan, added)
		slices.SortFunc(p, func(a, b Fault) int { return strings.Compare(a.String(), b.String()) })
		if name := p.String(); !p.collides() && !x.tried[name] {
			x.tried[name] = true
			return p
		}
	}
	return nil
}

func (x *explorer) over() bool {
	return x.report.Plans >= x.world.plans() || time.Now().After(x.end) || len(x.report.Findings) >= x.world.findings()
}

func (x *explorer) progress(o Outcome) {
	if x.world.Progress != nil {
		x.world.Progress(o)
	}
}

// only runs the plan of the World until it shows a problem.
func (x *explorer) only(p Plan) error {
	x.report.alone = true
	for range attempts {
		if err := x.try(p); err != nil || len(x.report.Findings)+len(x.rare) > 0 {
			return err
		}
	}
	return nil
}

// prepare makes the state that all runs start from.
func (x *explorer) prepare() (err error) {
	x.clock.execute(^x.world.Seed, func() { // uids differ from those of all runs
		e := &envtest.Environment{
			InMemory: x.clock.inMemory(), Controllers: x.world.controllers(),
			CRDs: x.world.CRDs, CRDDirectoryPaths: x.world.CRDDirectoryPaths, ErrorIfCRDPathMissing: true,
		}
		if _, err = e.Start(); err == nil {
			err = e.WaitIdle(context.Background())
		}
		if err == nil {
			x.prepared, err = e.Snapshot()
		}
		err = errors.Join(err, e.Stop())
	})
	return err
}

// learn runs the scenario a few times without faults, in variations. Values that differ between these runs may
// differ in others, too. If a run has a problem, that is the only Finding, and learn returns nil.
func (x *explorer) learn() (*run, error) {
	x.expect = &expectation{vary: x.world.ignored()}
	var runs []*run
	for n := range faultless {
		r := &run{world: x.world, variation: n, seed: x.world.Seed + uint64(n)}
		if len(runs) > 0 && !x.clock.inMemory() {
			r.like = runs[0].ends
		}
		if err := x.execute(r); err != nil {
			return nil, err
		}
		x.progress(Outcome{Problem: r.problem})
		switch {
		case r.problem == nil:
		case r.problem.Kind == Scene:
			return nil, fmt.Errorf("without faults: %s\n\n%s", r.problem.Text, Story(r.story))
		default:
			x.report.Findings = []Finding{{Problem: *r.problem, Story: r.story}}
			return nil, nil
		}
		runs = append(runs, r)
	}
	if err := x.expect.learn(runs); err != nil {
		return nil, err
	}
	for _, r := range runs {
		x.seen[r.behaviour(x.expect)] = true
	}
	return runs[0], x.follow(runs[0])
}

// follow runs the scenario while another identity holds a Lease of the program, and learns the writes for which
// the program does not need it.
func (x *explorer) follow(learnt *run) error {
	x.expect.withoutLease = map[identity]map[string]bool{}
	for _, id := range sorted(learnt.leases) {
		r := &run{world: x.world, seed: x.world.Seed, taken: &id}
		if err := x.execute(r); err != nil {
			return err
		}
		writes := map[string]bool{}
		for _, write := range r.written {
			writes[r.stable(write, x.expect)] = true
		}
		x.expect.withoutLease[id] = writes
	}
	return nil
}

// run executes one plan in a bubble of its own. Runs of other variations have other random values, times and
// resourceVersions.
func (x *explorer) run(p Plan, expect *expectation, variation int) (*run, error) {
	r := &run{world: x.world, variation: variation, seed: x.world.Seed + uint64(variation), plan: p, expect: expect}
	return r, x.execute(r)
}

func (x *explorer) execute(r *run) (err error) {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	r.clock, r.ctx = x.clock, x.ctx
	x.clock.execute(r.seed, func() { err = r.execute(x.prepared, x.scenario) })
	return errors.Join(err, x.ctx.Err())
}

// vary makes times and resourceVersions of the run differ from those of other variations.
func (r *run) vary() error {
	for range r.variation {
		<-time.After(r.times.apart)
		l := newLease("default", "variation")
		if err := errors.Join(r.admin.Create(context.Background(), l), r.admin.Delete(context.Background(), l)); err != nil {
			return err
		}
	}
	return nil
}

// try runs a plan, and adds the problem that it shows to the Findings.
func (x *explorer) try(p Plan) error {
	x.report.Plans++
	r, err := x.run(p, x.expect, 0)
	if err != nil {
		return err
	}
	missed := r.missed()
	if len(missed) > 0 {
		x.report.Missed++
	}
	x.progress(Outcome{p, r.problem, missed})
	if b := r.behaviour(x.expect); !x.seen[b] && r.problem == nil {
		x.seen[b] = true
		if len(p) < maxFaults {
			x.stems = append(x.stems, newStem(r))
		}
	}
	if r.problem == nil || r.problem.Kind == Scene && (p.hastes() || r.loose || len(r.stripped) > 0) {
		return nil
	}
	f := Finding{Problem: *r.problem, Plan: p, Story: r.story, At: x.report.Plans}
	if x.found[f.key()] {
		return nil
	}
	if err := x.shrink(&f); err != nil {
		return err
	}
	if f.Shown == 0 {
		if _, known := x.rare[f.key()]; !known && len(x.rare) < maxRare {
			x.rare[f.key()] = f
		}
		return nil
	}
	delete(x.rare, f.key())
	x.found[f.key()] = true
	x.report.Findings = append(x.report.Findings, f)
	return nil
}

// shrink removes faults that the problem does not need, and repeats the run.
func (x *explorer) shrink(f *Finding) error {
	for i := 0; i < len(f.Plan) && len(f.Plan) > 1; {
		smaller := slices.Delete(slices.Clone(f.Plan), i, i+1)
		r, err := x.run(smaller, x.expect, 0)
		if err != nil {
			return err
		}
		if r.problem == nil || key(*r.problem) != f.key() {
			i++
			continue
		}
		f.Plan, f.Problem, f.Story = smaller, *r.problem, r.story
	}
	for range repeats {
		r, err := x.run(f.Plan, x.expect, 0)
		if err != nil {
			return err
		}
		f.Repeated++
		if r.problem != nil && key(*r.problem) == f.key() {
			f.Shown++
		}
	}
	return nil
}

func (f *Finding) key() string { return key(f.Problem) }

// key is equal for equal problems.
func key(p Problem) string { return string(p.Kind) + " " + p.signature }

// A behaviour is equal for runs in which the program does the same.
type behaviour [sha256.Size]byte

func (r *run) behaviour(x *expectation) behaviour {
	return sha256.Sum256([]byte(strings.Join(r.stables(r.written, x), "\n")))
}

// missed returns the faults of the plan that had no effect. A run with a problem ends early, and has none.
func (r *run) missed() (p Plan) {
	if r.problem != nil {
		return nil
	}
	for i, f := range r.plan {
		if f.Kind != Shuffle && !r.begun[&r.plan[i]] {
			p = append(p, f)
		}
	}
	return p
}

// plans returns the plans with one fault each, for what a run did.
func plans(r *run) (all []Plan) {
	for n, write := range r.written {
		kinds := []FaultKind{CrashAfter, CrashBefore, LoseResponse, Fail, Partition, Pause, Slow, SlowResponse}
		if strings.HasPrefix(write, "update ") {
			kinds = append(kinds, Conflict)
		}
		if r.lists {
			kinds = append(kinds, StaleRestart)
		}
		if r.world.Inputs {
			kinds = append(kinds, Recreate)
		}
		for _, k := range []FaultKind{Hurry, LoseLease, RemoveFinalizers} {
			if slices.Contains(r.sites[k], n+1) {
				kinds = append(kinds, k)
			}
		}
		for _, k := range kinds {
			all = append(all, Plan{{Kind: k, At: n + 1}})
		}
	}
	for resource, events := range r.events {
		for n := range events {
			kinds := []FaultKind{Hold, Relist}
			if len(r.ends) > 1 {
				kinds = append(kinds, Stall)
			}
			if len(r.ends) > 1 && r.ofUser(events[n]) {
				kinds = append(kinds, Miss)
			}
			if r.lists {
				kinds = append(kinds, Rewind)
			}
			for _, k := range kinds {
				all = append(all, Plan{{Kind: k, Resource: resource, At: n + 1}})
			}
		}
	}
	for resource, values := range r.inputs {
		for n := range values {
			all = append(all, Plan{{Kind: Input, Resource: resource, At: n + 1}})
		}
	}
	for seed := range shuffles {
		all = append(all, Plan{{Kind: Shuffle, At: seed + 1}})
	}
	if chosen := r.world.Faults; chosen != nil {
		all = slices.DeleteFunc(all, func(p Plan) bool { return !slices.Contains(chosen, p[0].Kind) })
	}
	slices.SortFunc(all, func(a, b Plan) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// ofUser reports whether an event is of an object that the user applied.
func (r *run) ofUser(event string) bool {
	return slices.ContainsFunc(r.touched, func(id identity) bool { return strings.HasSuffix(event, " "+id.String()) })
}

// repetition returns how often an equal write or event came before that of a fault. Repeated writes reveal less
// than new ones.
func (x *expectation) repetition(f Fault) int {
	var all []string
	switch traits[f.Kind].of {
	case ofWrites:
		all = x.writes
	case ofEvents:
		all = x.events[f.Resource]
	default:
		return 0
	}
	return count(all[:f.At-1], all[f.At-1])
}

// shuffles is the number of plans with another order.
const shuffles = 10
