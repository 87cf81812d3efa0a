package verify

import (
	"slices"
	"time"
)

// A lateCall is a write with a delay.
type lateCall struct {
	call       *call
	kind       FaultKind // Slow, SlowResponse or LoseLease
	began, due time.Time
	acted      bool // the user has acted during the delay
}

// waits reports whether the user still waits for the end of the delay.
func (l *lateCall) waits() bool { return l.kind != LoseLease && !l.acted }

// delay delays a write, or the response to it.
func (r *run) delay(c *call, k FaultKind, d time.Duration) {
	r.gate.forget(c)
	r.late = append(r.late, &lateCall{call: c, kind: k, began: time.Now(), due: time.Now().Add(d)})
}

// finishLate ends the first delay that is over. It reports whether there was one.
func (r *run) finishLate() bool {
	i := slices.IndexFunc(r.late, func(l *lateCall) bool { return !time.Now().Before(l.due) })
	if i < 0 || r.paused() {
		return false
	}
	l := r.late[i]
	if l.kind == SlowResponse && time.Now().Before(r.cutUntil) {
		l.due = r.cutUntil // no response passes a Partition
		return false
	}
	r.late = slices.Delete(r.late, i, i+1)
	r.changed = time.Now()
	switch {
	case l.kind == SlowResponse:
		close(l.call.respond)
	case r.gate.left(l.call):
		r.tell("program", "no longer waits for "+l.call.String())
	case time.Now().Before(r.cutUntil):
		r.gate.decide(l.call, hangUp)
	case l.kind == LoseLease:
		r.tell("fault", "the server fails to "+l.call.String())
		r.gate.decide(l.call, fail)
	default:
		r.pass(l.call)
	}
	return true
}

// endLate ends all delays, so that the server can stop.
func (r *run) endLate() {
	for _, l := range r.late {
		if l.kind == SlowResponse {
			close(l.call.respond)
		} else if !r.gate.left(l.call) {
			r.gate.decide(l.call, hangUp)
		}
	}
	r.late = nil
}

// paused reports whether a Pause is in force.
func (r *run) paused() bool { return !r.pausedAt.IsZero() }

// pauseAt begins a Pause before a write, once.
func (r *run) pauseAt(c *call, f *Fault) bool {
	if r.begun[f] {
		return false
	}
	r.begun[f], r.pausedAt = true, time.Now()
	r.program.suspend(true)
	r.tell("fault", "the program is suspended for "+r.times.pause.String()+", before it can "+c.String())
	return true
}

// resume ends a Pause. The revisions of the watches of the program are compacted then. It reports whether it
// did.
func (r *run) resume() bool {
	if !r.paused() || time.Since(r.pausedAt) < r.times.pause {
		return false
	}
	r.pausedAt, r.changed, r.compacted = time.Time{}, time.Now(), r.state.Revision
	r.tell("fault", "the program goes on, and its watches expire")
	r.cut = r.gate.endWatches(r.clock)
	r.program.suspend(false)
	return true
}
