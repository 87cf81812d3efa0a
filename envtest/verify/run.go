package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/anykind/anykind/envtest"
)

var errInjected = errors.New("the server has a problem")

const (
	// maxHeld limits the requests and events while others are held: a program need not become idle.
	maxHeld = 100
	// maxBusy limits the requests and events without a pause.
	maxBusy = 2000
	// maxRestarts limits the restarts after the program ended by itself, in one run.
	maxRestarts = 5
)

// A run is one execution of the scenario with a Plan.
type run struct {
	world     *World
	ctx       context.Context
	clock     clock
	times     durations
	variation int // 0 for runs with faults
	seed      uint64
	plan      Plan
	expect    *expectation // nil while it is learnt
	like      []end        // of an earlier run while it is learnt: the same state is an end at once

	env     *envtest.Environment
	gate    *gate
	program *program
	kubelet kubernetes.Interface // nil without World.Kubelet
	random  *rand.Rand           // of Shuffle, else nil
	base    *State
	state   *State
	always  []check

	mu      sync.Mutex
	changes []envtest.Change // since the last look
	failed  error            // of one of World.Others

	story    []Line
	began    time.Time
	changed  time.Time           // of the last change that counts
	idle     time.Time           // of the last pause
	busy     int                 // requests and events since then
	written  []string            // the writes, for faults
	events   map[string][]string // delivered ones by resource
	lists    bool                // the program lists with resourceVersion=0 without a watch that begins with a list
	ends     []end               // at each Settle
	states   []*State            // at each Settle, if expect is nil
	admin    client.Client
	latest   *object            // the last applied object, with World.Inputs
	deleted  identity           // the last object that the user deleted
	again    *object            // one that the user deleted and will apply again
	inputs   map[string][]input // of custom resources that a Settle followed, by resource
	custom   *object            // the custom resource that was applied last since the last Settle
	restarts int                // after the program ended by itself
	starts   int
	last     bool // the scenario is over

	touched  []identity            // the objects that the user applied, the last one at the end
	set      map[identity][]string // finalizers of these objects that the program has set
	stripped map[identity]bool     // objects whose finalizers the user removed, until the program sets them again
	loose    bool                  // one of them is gone: its cleanup can be left out
	leases   map[identity]leadership
	lost     *lostLease          // LoseLease in force
	taken    *identity           // a Lease that another identity holds from the beginning
	sites    map[FaultKind][]int // the writes at which a fault with a condition has an effect
	recent   []envtest.Change    // the last changes, for the text of Endless

	late      []*lateCall // Slow, SlowResponse or LoseLease in force
	pausedAt  time.Time   // of the Pause in force, or zero
	compacted int64       // watches of older revisions expire

	holding   *Fault // Hold or Relist in force
	holdBegan time.Time
	holdUntil time.Time       // zero while the program has other things to do
	heldSteps int             // requests and events since then
	stallOver bool            // the user acted during the Stall
	begun     map[*Fault]bool // the faults of the plan whose write, event or input came
	stale     *staleLists     // after StaleRestart and Rewind
	past      *pastEvent      // of a Rewind to come
	cutUntil  time.Time
	cut       map[string]bool // watches that a Partition ended, until they begin again
	problem   *Problem
}

// A Problem says what is wrong in a run.
type Problem struct {
	Kind ProblemKind
	Text string

	signature string // equal for equal defects
}

// A ProblemKind classifies Problems.
type ProblemKind string

// The problems.
const (
	Broken    ProblemKind = "an invariant is broken"
	Different ProblemKind = "the end differs"
	Endless   ProblemKind = "the program does not come to rest"
	Exits     ProblemKind = "the program exits"
	Panics    ProblemKind = "the program panics"
	Deposed   ProblemKind = "the program writes without its Lease"
	Scene     ProblemKind = "the scenario fails"
)

// stopped ends a run by panic.
type stopped struct{}

func (r *run) fail(kind ProblemKind, format string, args ...any) {
	p := Problem{Kind: kind, Text: fmt.Sprintf(format, args...)}
	if kind == Endless {
		r.nameFights(&p)
	}
	r.found(p)
	panic(stopped{})
}

// found notes the first problem.
func (r *run) found(p Problem) {
	if r.problem == nil {
		r.problem = &p
	}
}

var numbers = regexp.MustCompile(`\d+`)

// excused reports whether conditions and states do not count, because the user removed finalizers.
func (r *run) excused() bool { return r.loose || len(r.stripped) > 0 && !r.world.Inputs }

// broken notes a condition that does not hold.
func (r *run) broken(c check, where string, err error) {
	if r.excused() || r.taken != nil {
		return
	}
	alike := numbers.ReplaceAllString(namesOf(r.state.names, r.state.objects, nil).text(err.Error()), "#")
	r.found(Problem{Broken, fmt.Sprintf("%s, %s: %v", where, c.name, err), c.name + ": " + alike})
}

// execute runs the scenario.
func (r *run) execute(prepared *envtest.Snapshot, scenario func(*Scenario)) (err error) {
	r.times = r.clock.durations(r.world.Quiet)
	r.env = &envtest.Environment{InMemory: r.clock.inMemory(), From: prepared, Controllers: r.world.controllers()}
	if _, err := r.env.Start(); err != nil {
		return fmt.Errorf("starting a server: %w", err)
	}
	stop := func() error { return r.env.Stop() }
	admin, err := client.New(r.env.Config, client.Options{Scheme: r.world.scheme()})
	r.admin = admin
	if err == nil {
		err = r.startKubelet()
	}
	if err == nil {
		err = r.env.WaitIdle(context.Background())
	}
	if err == nil {
		err = r.vary()
	}
	if err == nil {
		err = r.read()
	}
	if err != nil {
		return errors.Join(err, stop())
	}
	r.gate = newGate()
	defer r.env.Observe(func(c envtest.Change) {
		r.mu.Lock()
		r.changes = append(r.changes, c)
		r.mu.Unlock()
		r.gate.signal()
	})()
	r.events, r.begun, r.inputs = map[string][]string{}, map[*Fault]bool{}, map[string][]input{}
	r.set, r.stripped, r.leases, r.sites = map[identity][]string{}, map[identity]bool{}, map[identity]leadership{}, map[FaultKind][]int{}
	r.began, r.changed, r.idle = time.Now(), time.Now(), time.Now()
	if seed, ok := r.plan.seed(); ok {
		r.random = rand.New(rand.NewPCG(uint64(seed), 0))
	}
	user := r.world.user()
	r.env.Inject(envtest.Fault{Requests: envtest.Requests{User: user.Name}, Times: envtest.Always, Effect: r.gate.effect})
	if r.clock.inMemory() {
		defer watchPanics(r)()
	}
	others, err := r.startOthers()
	if err != nil {
		return errors.Join(err, stop())
	}
	defer func() { // also if the scenario panics or ends its test
		r.endLate()
		r.kill()
		others()
		err = errors.Join(err, stop())
	}()
	if err := r.start(); err != nil {
		return err
	}
	r.play(&Scenario{Client: admin, run: r}, scenario)
	return nil
}

// read reads the state before the run.
func (r *run) read() error {
	objects, err := r.env.Objects(context.Background())
	if err != nil {
		return err
	}
	r.base = &State{scheme: r.world.scheme(), objects: make(map[identity]*object, len(objects)), names: map[identity]string{}}
	for _, u := range objects {
		r.base.put(u)
		if revision, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64); err == nil {
			r.base.Revision = max(r.base.Revision, revision)
		}
	}
	r.state = r.base.clone()
	return nil
}

// play executes the scenario and the last Settle.
func (r *run) play(s *Scenario, scenario func(*Scenario)) {
	defer func() {
		if p := recover(); p != nil {
			if _, ours := p.(stopped); !ours {
				panic(p)
			}
		}
	}()
	for _, o := range r.world.Objects {
		s.Apply(o)
	}
	scenario(s)
	r.last = true
	s.Settle()
	for _, c := range s.finally {
		if err := c.holds(r.state); err != nil {
			r.broken(c, "at the end", err)
		}
		if r.problem != nil {
			panic(stopped{})
		}
	}
}

func (r *run) gvk(o client.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, r.world.scheme())
}
