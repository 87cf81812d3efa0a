package verify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/envtest"
)

var errInjected = errors.New("the server has a problem")

const (
	// lag is the time for which held events stay away from an idle program.
	lag = 5 * time.Second
	// partition is the duration of a Partition.
	partition = time.Minute
	// patience is the time without a change after which a state is an end state, whether it is the expected
	// one or not. It exceeds the backoff of a controller that failed a few times.
	patience = 20 * time.Minute
	// maxSettle limits one Settle: a program that still changes objects then does so forever.
	maxSettle = 6 * time.Hour
	// maxRestarts limits the restarts after Start returned, in one run.
	maxRestarts = 5
)

// A run is one execution of the scenario with a Plan. It lives in a bubble of testing/synctest.
type run struct {
	world  *World
	plan   Plan
	expect *expectation // nil while it is learnt

	env     *envtest.Environment
	gate    *gate
	program *program
	random  *rand.Rand // of Shuffle, else nil
	base    *State
	state   *State
	always  []check

	mu      sync.Mutex
	changes []envtest.Change // since the last look

	story    []Line
	began    time.Time
	changed  time.Time // of the last change that counts
	steps    int
	writes   int
	written  []string       // the writes, for faults
	events   map[string]int // delivered ones by resource
	lists    bool           // the program lists with resourceVersion=0 without a watch that begins with a list
	ends     []end          // at each Settle
	restarts int

	holding   *Fault    // Hold or Relist in force
	holdUntil time.Time // zero while the program has other things to do
	held      map[*Fault]bool
	stale     int64 // revision of lists with resourceVersion=0 after StaleRestart; 0 is the present one
	cutUntil  time.Time
	problem   *Problem
}

// A Problem says what is wrong in a run.
type Problem struct {
	Kind ProblemKind
	Text string
}

// A ProblemKind classifies Problems.
type ProblemKind string

// The problems.
const (
	Broken    ProblemKind = "an invariant is broken"
	Different ProblemKind = "the end differs from the end without faults"
	Endless   ProblemKind = "the program does not come to rest"
	Exits     ProblemKind = "the program exits"
	Panics    ProblemKind = "the program panics"
	Scene     ProblemKind = "the scenario fails"
)

// stopped ends a run by panic.
type stopped struct{}

func (r *run) fail(kind ProblemKind, format string, args ...any) {
	if r.problem == nil {
		r.problem = &Problem{kind, fmt.Sprintf(format, args...)}
	}
	panic(stopped{})
}

// execute runs the scenario.
func (r *run) execute(prepared *envtest.Snapshot, scenario func(*Scenario)) error {
	r.env = &envtest.Environment{InMemory: true, From: prepared, Controllers: r.world.controllers()}
	if _, err := r.env.Start(); err != nil {
		return fmt.Errorf("starting a server: %w", err)
	}
	stop := func() error { return r.env.Stop() }
	admin, err := client.New(r.env.Config, client.Options{Scheme: r.world.scheme()})
	if err == nil {
		err = r.env.WaitIdle(context.Background())
	}
	if err == nil {
		err = r.read()
	}
	if err != nil {
		return errors.Join(err, stop())
	}
	defer r.env.Observe(func(c envtest.Change) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changes = append(r.changes, c)
	})()
	r.gate, r.events, r.held = newGate(), map[string]int{}, map[*Fault]bool{}
	r.began, r.changed = time.Now(), time.Now()
	if seed, ok := r.plan.seed(); ok {
		r.random = rand.New(rand.NewPCG(uint64(seed), 0))
	}
	user := r.world.user()
	r.env.Inject(envtest.Fault{Requests: envtest.Requests{User: user.Name}, Times: envtest.Always, Effect: r.gate.effect})
	defer watchPanics(r)()
	if err := r.start(); err != nil {
		return errors.Join(err, stop())
	}
	r.play(&Scenario{Client: admin, run: r}, scenario)
	r.kill()
	return stop()
}

// read reads the state before the run.
func (r *run) read() error {
	objects, err := r.env.Objects(context.Background())
	if err != nil {
		return err
	}
	r.base = &State{scheme: r.world.scheme(), objects: make(map[identity]*object, len(objects))}
	for _, u := range objects {
		r.base.objects[identityOf(u)] = u
		if revision, err := strconv.ParseInt(u.GetResourceVersion(), 10, 64); err == nil {
			r.base.Revision = max(r.base.Revision, revision)
		}
	}
	r.state = &State{Revision: r.base.Revision, scheme: r.base.scheme, objects: maps.Clone(r.base.objects)}
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
	s.Settle()
	for _, c := range s.finally {
		if err := c.holds(r.state); err != nil {
			r.fail(Broken, "at the end, %s: %v", c.name, err)
		}
	}
}

// A program is the running program.
type program struct {
	stop context.CancelFunc
	done chan error

	mu    sync.Mutex
	dead  bool
	conns []interface{ Close() error }
}

// start starts the program.
func (r *run) start() error {
	user, err := r.env.AddUser(r.world.user(), &rest.Config{QPS: -1})
	if err != nil {
		return err
	}
	config := user.Config()
	ctx, cancel := context.WithCancel(context.Background())
	p := &program{stop: cancel, done: make(chan error, 1)}
	p.tie(config)
	r.program = p
	go func() { p.done <- r.world.Start(ctx, config) }()
	return nil
}

// kill ends the program as a crash does: nothing that it sends from now on arrives. It gets time to end
// its goroutines.
func (r *run) kill() {
	p := r.program
	p.cut(true)
	p.stop()
	select {
	case <-p.done:
	case <-time.After(time.Minute):
	}
	synctest.Wait()
}

// restart starts the program after its end.
func (r *run) restart() {
	if err := r.start(); err != nil {
		r.fail(Scene, "starting the program again: %v", err)
	}
	r.tell("program", "starts again")
	r.changed = time.Now()
}

// exited handles the end of a program that nothing killed.
func (r *run) exited(err error) {
	r.program.done <- err // for kill
	r.kill()
	r.tell("program", fmt.Sprintf("exits: %v", err))
	if r.restarts++; r.expect == nil || r.restarts > maxRestarts {
		r.fail(Exits, "Start returned %d times, the last time with: %v", r.restarts, err)
	}
	time.Sleep(10 * time.Second << (r.restarts - 1)) // as a kubelet restarts containers
	r.restart()
}

// settle lets the program run until nothing changes.
func (r *run) settle() {
	began := time.Now()
	for {
		synctest.Wait()
		r.drain()
		if r.step() {
			continue
		}
		quiet := time.Since(r.changed)
		if quiet >= r.world.quiet() && r.holding == nil && (r.asExpected() || quiet >= patience) {
			break
		}
		if time.Since(began) > maxSettle {
			r.fail(Endless, "objects still change after %v; the last change: %s", maxSettle, r.lastChange())
		}
		select {
		case <-r.gate.arrived:
		case err := <-r.program.done:
			r.exited(err)
		case <-time.After(r.wait(quiet)):
		}
	}
	r.ends = append(r.ends, r.state.end(r.base))
	if r.expect != nil {
		if text := r.expect.difference(len(r.ends)-1, r.ends[len(r.ends)-1]); text != "" {
			r.fail(Different, "%s", text)
		}
	}
}

// wait returns how long time may pass if nothing happens.
func (r *run) wait(quiet time.Duration) time.Duration {
	d := r.world.quiet() - quiet
	if d <= 0 {
		d = patience - quiet
	}
	if r.holding != nil {
		d = time.Until(r.holdUntil)
	}
	if cut := time.Until(r.cutUntil); cut > 0 {
		d = min(d, cut)
	}
	return max(d, time.Millisecond)
}

// asExpected reports whether the state is the expected one.
func (r *run) asExpected() bool {
	return r.expect != nil && r.expect.difference(len(r.ends), r.state.end(r.base)) == ""
}

// drain applies the changes since the last call, and checks the invariants in each state.
func (r *run) drain() {
	r.mu.Lock()
	changes := r.changes
	r.changes = nil
	r.mu.Unlock()
	for _, c := range changes {
		r.state.apply(c)
		of := c.After
		if of == nil {
			of = c.Before
		}
		if passing(of.GroupVersionKind().GroupKind()) {
			continue
		}
		r.changed = time.Now()
		actor := "server"
		switch c.User {
		case r.world.user().Name:
			actor = "program"
		case "admin":
			actor = "user"
		}
		r.tell(actor, "writes "+c.String())
		for _, a := range r.always {
			if err := a.holds(r.state); err != nil && r.problem == nil {
				r.problem = &Problem{Broken, fmt.Sprintf("at revision %d, %s: %v", r.state.Revision, a.name, err)}
			}
		}
	}
	if r.problem != nil {
		panic(stopped{})
	}
}

func (r *run) lastChange() string {
	for i := len(r.story) - 1; i >= 0; i-- {
		if strings.HasPrefix(r.story[i].Text, "writes ") {
			return r.story[i].Text
		}
	}
	return "none"
}

// step lets one call or event pass. It returns false if there is none.
func (r *run) step() bool {
	calls, streams := r.gate.pending()
	streams = r.unheld(streams)
	n := len(calls) + len(streams)
	if n == 0 {
		return r.release()
	}
	r.holdUntil = time.Time{}
	if r.steps++; r.steps > r.world.maxSteps(r.expect) {
		r.fail(Endless, "%d requests and events, without end; the last change: %s", r.steps, r.lastChange())
	}
	i := 0
	if r.random != nil {
		i = r.random.IntN(n)
	}
	if i < len(streams) {
		r.deliver(streams[i])
	} else {
		r.call(calls[i-len(streams)])
	}
	return true
}

// unheld returns the streams whose events may pass.
func (r *run) unheld(streams []*stream) (free []*stream) {
	for _, s := range streams {
		if r.holding == nil {
			for i, f := range r.plan {
				if f.Kind.ofEvents() && f.Resource == s.resource() && !r.held[&r.plan[i]] && r.events[f.Resource]+1 >= f.At {
					r.holding, r.held[&r.plan[i]] = &r.plan[i], true
					r.tell("fault", "holds events of "+f.Resource)
				}
			}
		}
		if r.holding == nil || r.holding.Kind.ofEvents() && r.holding.Resource != s.resource() {
			free = append(free, s)
		}
	}
	return free
}

// release ends a hold when the program has been idle for long enough. It reports whether it did.
func (r *run) release() bool {
	if r.holding == nil {
		return false
	}
	if r.holdUntil.IsZero() {
		r.holdUntil = time.Now().Add(lag)
	}
	if time.Now().Before(r.holdUntil) {
		return false
	}
	f := r.holding
	r.holding, r.stale, r.holdUntil = nil, 0, time.Time{}
	r.changed = time.Now()
	if f.Kind != Relist {
		r.tell("fault", "lets events pass again")
		return true
	}
	r.tell("fault", "drops the events of "+f.Resource+" and expires the watch")
	_, streams := r.gate.pending()
	for _, s := range streams {
		if s.resource() == f.Resource {
			s.expire()
		}
	}
	return true
}

// deliver sends the next event of a watch, or all of an initial list.
func (r *run) deliver(s *stream) {
	n := 1
	e := readEvent(s.events[0])
	if s.initial {
		for n < len(s.events) && !e.endsInitial() {
			e = readEvent(s.events[n])
			n++
		}
		s.initial = !e.endsInitial()
	}
	if e.kind != "BOOKMARK" {
		r.events[s.resource()]++
		r.tell("program", fmt.Sprintf("sees %s %s", e.kind, e.object))
	}
	s.deliver(n)
}

// call decides about a request.
func (r *run) call(c *call) {
	if time.Now().Before(r.cutUntil) {
		r.gate.decide(c, hangUp)
		return
	}
	if !c.isWrite() {
		r.reading(c)
		return
	}
	r.writes++
	r.written = append(r.written, c.String())
	f := r.plan.at(r.writes)
	if f == nil {
		r.gate.decide(c, pass)
		synctest.Wait()
		if c.status >= 400 {
			r.tell("program", fmt.Sprintf("fails to %s: %d", c, c.status))
		}
		return
	}
	r.fault(c, f)
}

// fault executes the fault of a write.
func (r *run) fault(c *call, f *Fault) {
	before := r.state.Revision
	switch f.Kind {
	case CrashBefore:
		r.tell("fault", "the program crashes before it can "+c.String())
		r.kill()
		r.restart()
	case CrashAfter, StaleRestart:
		r.gate.decide(c, die)
		synctest.Wait()
		r.drain()
		r.tell("fault", "the program crashes before the response to "+c.String())
		r.kill()
		if f.Kind == StaleRestart {
			r.stale, r.holding = before, f
			r.tell("fault", fmt.Sprintf("caches of the server are at revision %d", before))
		}
		r.restart()
	case LoseResponse:
		r.tell("fault", "the response is lost: "+c.String())
		r.gate.decide(c, lose)
	case Fail:
		r.tell("fault", "the server fails to "+c.String())
		r.gate.decide(c, fail)
	case Conflict:
		r.tell("fault", "a conflict: "+c.String())
		r.gate.decide(c, clash)
	case Partition:
		r.tell("fault", fmt.Sprintf("the program cannot reach the server for %v, before it can %s", partition, c))
		r.cutUntil = time.Now().Add(partition)
		r.program.cut(false)
	}
}

// reading lets a request pass that changes nothing.
func (r *run) reading(c *call) {
	query := c.request.URL.Query()
	if query.Get("sendInitialEvents") == "true" {
		r.gate.decide(c, noBegin)
		return
	}
	if c.info.Verb == "list" && query.Get("resourceVersion") == "0" {
		r.lists = true
		if r.stale != 0 {
			query.Set("resourceVersion", strconv.FormatInt(r.stale, 10))
			query.Set("resourceVersionMatch", "Exact")
			c.request.URL.RawQuery = query.Encode()
		}
	}
	if c.info.Verb != "watch" && c.info.Resource != "leases" {
		r.tell("program", c.String())
	}
	r.gate.decide(c, pass)
}

func (r *run) tell(actor, text string) {
	r.story = append(r.story, Line{time.Since(r.began), actor, text})
}

// tie makes the clients of config use connections that end with the program.
func (p *program) tie(config *rest.Config) {
	dial := config.Dial
	config.Dial = func(ctx context.Context, network, address string) (conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.dead {
			_ = c.Close()
			return nil, errors.New("dial: connection refused")
		}
		p.conns = append(p.conns, c)
		return c, nil
	}
}

// cut closes the connections, for good if the program is dead.
func (p *program) cut(dead bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = dead
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

// isWrite reports whether a fault can be at this request. Leases and events are no part of a state.
func (c *call) isWrite() bool {
	i := c.info
	switch {
	case i.Verb == "get" || i.Verb == "list" || i.Verb == "watch":
		return false
	case i.Resource == "events" || i.Resource == "leases" && i.Group == "coordination.k8s.io":
		return false
	case i.Group == "authorization.k8s.io" || i.Group == "authentication.k8s.io":
		return false
	}
	return c.request.URL.Query().Get("dryRun") == ""
}

// String names the request: the verb, the resource and the object.
func (c *call) String() string {
	resource := c.info.Resource
	if c.info.Subresource != "" {
		resource += "/" + c.info.Subresource
	}
	name := strings.Trim(c.info.Namespace+"/"+c.info.Name, "/")
	return strings.TrimSpace(strings.Join([]string{c.info.Verb, resource, name}, " "))
}

// resource returns the name of the watched resource in a Fault.
func (s *stream) resource() string {
	if g := s.call.info.Group; g != "" {
		return s.call.info.Resource + "." + g
	}
	return s.call.info.Resource
}

var _ http.ResponseWriter = (*stream)(nil)
