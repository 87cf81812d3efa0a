package verify

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anykind/anykind/envtest"
)

// settle lets the program rest, and compares the state with the expected one.
func (r *run) settle() {
	at := len(r.ends)
	if !r.rest(at) || !r.rewind(at) {
		r.ends = append(r.ends, nil)
		return
	}
	is := r.end()
	r.ends = append(r.ends, is)
	if r.expect == nil {
		r.states = append(r.states, r.state.clone())
		return
	}
	r.compare(at, is)
}

// compare makes a difference between an end and the expected one at a Settle a problem.
func (r *run) compare(at int, is end) {
	if r.excused() {
		return
	}
	if all := r.expect.differences(at, is); len(all) > 0 {
		r.found(Problem{Different, all.String(), all.signature()})
		panic(stopped{})
	}
}

// unknown is the number of a Settle whose end is not known.
const unknown = -1

// rest lets the program run until nothing changes. A number of a Settle says which state is expected. It
// returns false if the user does not wait for that.
func (r *run) rest(at int) bool {
	began := time.Now()
	r.changed = began
	if err := r.takeLease(); err != nil {
		r.fail(Scene, "taking the %s: %v", r.taken, err)
	}
	for {
		r.clock.wait(r.gate)
		if err := r.ctx.Err(); err != nil {
			r.fail(Scene, "%v", err)
		}
		r.gate.listen()
		r.drain()
		if r.returned() {
			continue
		}
		if r.hurry() {
			return false
		}
		if r.faulty() {
			began = time.Now()
		}
		if limit := max(r.times.settle, 5*r.patience()); time.Since(began) > limit {
			r.fail(Endless, "objects still change after %v; the last change: %s", limit, r.lastChange())
		}
		if r.resume() || r.finishLate() || r.releaseLease() || r.step() || r.kubeletActs() || r.reapply() {
			continue
		}
		if r.stalled() {
			return false
		}
		quiet := time.Since(r.changed)
		if quiet >= r.times.quiet && !r.faulty() && !r.gate.passing() && (r.again == nil && r.gate.watched(r.cut) && r.asExpected(at) || quiet >= r.patience()) {
			return true
		}
		r.busy, r.idle = 0, time.Now()
		r.sleep(r.wait(quiet))
	}
}

// patience returns the time without a change after which any state is an end. A program that starts again can wait for
// the end of its own Lease.
func (r *run) patience() time.Duration {
	d := r.times.patience
	for _, l := range r.leases {
		d = max(d, 2*l.duration)
	}
	return d
}

// sleep waits until something happens, or for a time.
func (r *run) sleep(d time.Duration) {
	done := r.program.done
	if r.paused() {
		done = nil
	}
	select {
	case <-r.gate.arrived:
	case err := <-done:
		r.program.done <- err // for returned, after the changes before it
	case <-time.After(d):
	case <-r.ctx.Done():
	}
}

// returned reports whether Start has returned, and starts the program again.
func (r *run) returned() bool {
	if r.paused() {
		return false
	}
	select {
	case err := <-r.program.done:
		r.exited(err)
		return true
	default:
		return false
	}
}

// faulty reports whether a fault is in force that takes time.
func (r *run) faulty() bool {
	return r.holding != nil || r.paused() || len(r.late) > 0 || r.lost != nil
}

// hurry reports whether a fault ends this Settle: the next step of the user comes before a write of the
// program.
func (r *run) hurry() bool {
	if r.last || r.deleting() || !slices.ContainsFunc(r.plan, func(f Fault) bool { return f.Kind == Hurry }) {
		return false
	}
	calls, _ := r.gate.pending()
	for _, c := range calls {
		if !c.isWrite() {
			continue
		}
		if f := r.faultAt(c); f != nil && f.Kind == Hurry && !r.begun[f] {
			r.begun[f] = true
			r.tell("fault", "the user does not wait until the program can "+c.String())
			return true
		}
	}
	return false
}

// deleting reports whether the last object that the user deleted is still there. The user waits for its end,
// as kubectl does.
func (r *run) deleting() bool { return r.deleted != (identity{}) && r.state.objects[r.deleted] != nil }

// stalled reports whether a fault that takes time ends this Settle: the user does not wait until it is over.
func (r *run) stalled() bool {
	if r.last || r.deleting() {
		return false
	}
	if r.stalling() && time.Since(r.holdBegan) >= r.times.stallAlone {
		r.stallOver = true
		r.tell("fault", "the user does not wait for the events of "+r.holding.Resource)
		return true
	}
	for _, l := range r.late {
		if l.waits() && time.Since(l.began) >= r.times.slowAlone {
			l.acted = true
			r.tell("fault", "the user does not wait until the program can "+l.call.String())
			return true
		}
	}
	return false
}

// stalling reports whether a Stall or a Miss is in force during which the user has not acted.
func (r *run) stalling() bool { return r.holding != nil && r.holding.Kind.stalls() && !r.stallOver }

// wait returns how long time may pass if nothing happens.
func (r *run) wait(quiet time.Duration) time.Duration {
	d := r.times.quiet - quiet
	if d <= 0 {
		d = r.patience() - quiet
	}
	if r.faulty() {
		d = r.patience()
	}
	for _, t := range r.deadlines() {
		if left := time.Until(t); left > 0 {
			d = min(d, left)
		}
	}
	return max(d, time.Millisecond)
}

// deadlines are the times at which faults that take time end, or at which the user no longer waits.
func (r *run) deadlines() (all []time.Time) {
	all = append(all, r.cutUntil)
	if r.holding != nil {
		all = append(all, r.holdUntil, r.holdBegan.Add(r.times.stallAlone))
	}
	if r.paused() {
		all = append(all, r.pausedAt.Add(r.times.pause))
	}
	for _, l := range r.late {
		all = append(all, l.due, l.began.Add(r.times.slowAlone))
	}
	if r.lost != nil {
		all = append(all, r.lost.until)
	}
	return all
}

// asExpected reports whether the state is the one that is expected at a Settle.
func (r *run) asExpected(at int) bool {
	if r.expect == nil {
		return at != unknown && at < len(r.like) && len(compareEnds(r.like[at], r.end()).without(r.world.ignored())) == 0
	}
	return at != unknown && len(r.expect.differences(at, r.end())) == 0
}

func (r *run) end() end {
	if r.expect == nil {
		return r.state.end(r.base, nil)
	}
	return r.state.end(r.base, r.expect.random)
}

// drain applies the changes since the last call, and checks the invariants in each state.
func (r *run) drain() {
	r.mu.Lock()
	changes, failed := r.changes, r.failed
	r.changes = nil
	r.mu.Unlock()
	if failed != nil {
		r.fail(Scene, "one of World.Others: %v", failed)
	}
	for _, c := range changes {
		if !r.state.apply(c) {
			continue
		}
		r.noteLease(c)
		r.noteFinalizers(c)
		if passing(idOf(c).kind) {
			continue
		}
		r.noteChange(c)
		r.tell(r.actor(c.User), "writes "+c.String())
		if r.counts(c) {
			r.changed = time.Now()
		}
		for _, a := range r.always {
			if err := a.holds(r.state); err != nil {
				r.broken(a, fmt.Sprintf("at revision %d", r.state.Revision), err)
			}
		}
	}
	if r.problem != nil {
		panic(stopped{})
	}
}

func (r *run) actor(user string) string {
	switch user {
	case r.world.user().Name:
		return "program"
	case "admin":
		return "user"
	case kubelet, other:
		return user
	}
	return "server"
}

// counts reports whether a change is one of a field that belongs to an end state.
func (r *run) counts(c envtest.Change) bool {
	if c.Before == nil || c.After == nil {
		return true
	}
	ignored := r.world.ignored()
	if r.expect != nil {
		ignored = r.expect.vary
	}
	var all differences
	n := names{replacer: strings.NewReplacer()}
	compareValues(difference{"", c.After.GetKind(), n.stable(bare(c.Before)), n.stable(bare(c.After))}, &all)
	return len(all.without(ignored)) > 0
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
	if r.paused() {
		return false
	}
	calls, streams := r.gate.pending()
	streams = r.unheld(streams)
	n := len(calls) + len(streams)
	if n == 0 || r.heldSteps > maxHeld {
		return r.release()
	}
	if r.holding != nil {
		r.heldSteps++
		if !r.holding.Kind.stalls() {
			r.holdUntil = time.Time{}
		}
	}
	if r.busy++; r.busy > maxBusy && r.clock.inMemory() {
		r.fail(Endless, "%d requests and events without a pause, in %v; the last change: %s", r.busy, time.Since(r.idle).Round(time.Second), r.lastChange())
	}
	// The longer a program is busy, the faster the clock runs: backoffs and leases end meanwhile.
	<-time.After(r.times.latency << min(r.busy/(maxBusy/10), 10))
	i := 0
	switch {
	case r.random != nil:
		i = r.random.IntN(n)
	case len(streams) > 0 && len(calls) > 0 && calls[0].round < streams[0].round:
		i = len(streams)
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
		if s.initial { // a list
			free = append(free, s)
			continue
		}
		if r.holding == nil {
			for i, f := range r.plan {
				if f.Kind.ofEvents() && f.Kind != Rewind && f.Resource == s.resource() && !r.begun[&r.plan[i]] && len(r.events[f.Resource])+1 >= f.At {
					r.hold(&r.plan[i])
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

// hold begins to hold events.
func (r *run) hold(f *Fault) {
	r.holding, r.begun[f], r.stallOver = f, true, false
	r.holdBegan, r.holdUntil = time.Now(), time.Time{}
	if f.Kind.stalls() {
		r.holdUntil = r.holdBegan.Add(r.times.stall)
	}
}

// release ends a hold when the program has been idle for long enough. It reports whether it did.
func (r *run) release() bool {
	if r.holding == nil {
		return false
	}
	if r.holdUntil.IsZero() {
		r.holdUntil = time.Now().Add(r.times.lag)
	}
	if (time.Now().Before(r.holdUntil) || r.starting()) && r.heldSteps <= maxHeld {
		return false
	}
	f := r.holding
	r.holding, r.stale, r.holdUntil, r.heldSteps = nil, nil, time.Time{}, 0
	r.changed = time.Now()
	if !traits[f.Kind].drops {
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
	n, events := 1, s.waiting()
	e := readEvent(events[0])
	switch {
	case s.initial:
		for n < len(events) && !e.endsInitial() {
			e = readEvent(events[n])
			n++
		}
		if s.initial = !e.endsInitial(); !s.initial {
			r.tell("program", "list "+s.call.info.Resource)
		}
	case e.kind != "BOOKMARK":
		text := fmt.Sprintf("%s %s", e.kind, e.of)
		r.noteEvent(s.resource(), e, text)
		r.events[s.resource()] = append(r.events[s.resource()], text)
		r.tell("program", "sees "+text)
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
	r.deposed(c)
	f := r.faultAt(c)
	if f != nil && f.Kind == Pause && r.pauseAt(c, f) {
		return
	}
	r.written = append(r.written, c.String())
	r.conditional()
	switch {
	case f == nil || f.Kind == Hurry || f.Kind == Pause:
		r.pass(c)
	case f.Kind == Recreate:
		r.begun[f] = r.recreate()
		r.pass(c)
	case f.Kind == RemoveFinalizers:
		r.begun[f] = r.strip()
		r.pass(c)
	case f.Kind == LoseLease:
		if r.begun[f] = r.loseLease(c); !r.begun[f] {
			r.pass(c)
		}
	default:
		r.begun[f] = true
		r.fault(c, f)
	}
}

// faultAt returns the fault of a write that has not yet passed, or nil.
func (r *run) faultAt(c *call) *Fault {
	for i, f := range r.plan {
		if traits[f.Kind].of == ofWrites && r.isNext(f.At, r.expect.writes, r.written, c.String()) {
			return &r.plan[i]
		}
	}
	return nil
}

// isNext reports whether the next write or event is the one that had a number in the run without faults. In real time, their order
// varies: the number stands for a text, and for how often it came before.
func (r *run) isNext(number int, without, now []string, text string) bool {
	if r.clock.inMemory() || number > len(without) {
		return number == len(now)+1
	}
	want, all := without[number-1], r.stables(append(slices.Clip(now), text), r.expect)
	return all[len(all)-1] == want && count(without[:number], want) == count(all, want)
}

// conditional notes the faults whose condition holds at this write.
func (r *run) conditional() {
	if !r.last && !r.deleting() {
		r.sites[Hurry] = append(r.sites[Hurry], len(r.written))
	}
	if r.leader() != nil {
		r.sites[LoseLease] = append(r.sites[LoseLease], len(r.written))
	}
	if r.strippable() != nil {
		r.sites[RemoveFinalizers] = append(r.sites[RemoveFinalizers], len(r.written))
	}
}

// pass lets a write take effect.
func (r *run) pass(c *call) {
	c.respond = make(chan struct{})
	r.gate.decide(c, pass)
	r.clock.wait(r.gate)
	r.drain()
	r.beforeResponse()
	close(c.respond)
	if c.status >= 400 {
		r.tell("program", fmt.Sprintf("fails to %s: %d", c, c.status))
	}
}

// beforeResponse delivers the events of a write before the program gets its response, so that the caches are
// up to date. In a shuffled run, that is a matter of chance.
func (r *run) beforeResponse() {
	for r.random == nil || r.random.IntN(2) == 0 {
		_, streams := r.gate.pending()
		if streams = r.unheld(streams); len(streams) == 0 {
			return
		}
		r.deliver(streams[0])
		r.clock.wait(r.gate)
	}
}

// fault executes the fault of a write.
func (r *run) fault(c *call, f *Fault) {
	before := r.state.Revision
	r.changed = time.Now()
	switch f.Kind {
	case CrashBefore:
		r.tell("fault", "the program crashes before it can "+c.String())
		r.kill()
		r.restart()
	case CrashAfter, StaleRestart:
		r.gate.decide(c, die)
		r.clock.wait(r.gate)
		r.drain()
		r.tell("fault", "the program crashes before the response to "+c.String())
		r.kill()
		if f.Kind == StaleRestart {
			r.stale = &staleLists{revision: before}
			r.hold(f)
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
		r.tell("fault", fmt.Sprintf("the program cannot reach the server for %v, before it can %s", r.times.partition, c))
		r.cutUntil = time.Now().Add(r.times.partition)
		r.cut = r.gate.endWatches(r.clock)
	case Slow:
		r.tell("fault", "the server delays: "+c.String())
		r.delay(c, f.Kind, r.times.slow)
	case SlowResponse:
		c.respond = make(chan struct{})
		r.gate.decide(c, pass)
		r.clock.wait(r.gate)
		r.drain()
		r.tell("fault", "the response is late: "+c.String())
		r.delay(c, f.Kind, r.times.slow)
	}
}

// reading lets a request pass that changes nothing.
func (r *run) reading(c *call) {
	query := c.request.URL.Query()
	if query.Get("sendInitialEvents") == "true" && r.world.WithoutWatchList {
		r.gate.decide(c, noBegin)
		return
	}
	if from, err := strconv.ParseInt(query.Get("resourceVersion"), 10, 64); err == nil && from > 0 && from < r.compacted && c.info.IsWatch() &&
		query.Get("sendInitialEvents") != "true" {
		r.gate.decide(c, tooOld)
		return
	}
	if c.info.Verb == "list" && query.Get("resourceVersion") == "0" {
		r.lists = true
		r.stale.serve(c)
	}
	if c.info.Verb != "watch" && c.info.Resource != "leases" {
		r.tell("program", c.String())
	}
	r.gate.decide(c, pass)
}

func (r *run) tell(actor, text string) {
	r.story = append(r.story, Line{time.Since(r.began), actor, text})
}
