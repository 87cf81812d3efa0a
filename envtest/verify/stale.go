package verify

import (
	"fmt"
	"maps"
	"strconv"
	"time"
)

// staleLists is an old state of the server, for lists with resourceVersion=0.
type staleLists struct {
	revision int64
	resource string // empty for all
	served   bool   // the program has asked for such a list
}

// serve makes a list return the old state.
func (s *staleLists) serve(c *call) {
	if s == nil || s.resource != "" && s.resource != c.resource() {
		return
	}
	s.served = true
	query := c.request.URL.Query()
	query.Set("resourceVersion", strconv.FormatInt(s.revision, 10))
	query.Set("resourceVersionMatch", "Exact")
	c.request.URL.RawQuery = query.Encode()
}

// starting reports whether the program has yet to send the list that returns the old state.
func (r *run) starting() bool {
	return r.stale != nil && !r.stale.served && time.Since(r.holdBegan) < slowStart
}

// A pastEvent is the event of a Rewind.
type pastEvent struct {
	fault    *Fault
	text     string
	revision int64
	settle   int // in which the program saw it
}

// noteEvent notes the event of a Rewind.
func (r *run) noteEvent(resource string, e event, text string) {
	for i, f := range r.plan {
		revision, err := strconv.ParseInt(e.whole.GetResourceVersion(), 10, 64)
		if f.Kind == Rewind && f.Resource == resource && err == nil && !r.begun[&r.plan[i]] && r.isNext(f.At, r.expect.events[resource], r.events[resource], text) {
			r.past = &pastEvent{&r.plan[i], text, revision, len(r.ends)}
		}
	}
}

// rewind executes a Rewind at the end of a Settle: the one after its event, or the last one. It returns false if the user does not
// wait for the end of the Settle.
func (r *run) rewind(at int) bool {
	past := r.past
	if past == nil || past.settle == at && !r.last {
		return true
	}
	r.past = nil
	before := maps.Clone(r.state.objects)
	r.tell("fault", fmt.Sprintf("the program crashes, and the cache of the server has %s as after the event %s", past.fault.Resource, past.text))
	r.kill()
	r.stale = &staleLists{revision: past.revision, resource: past.fault.Resource}
	r.hold(past.fault)
	r.restart()
	settled := r.rest(at)
	for _, id := range sorted(before) {
		is := r.state.objects[id]
		if is != nil && !r.excused() && is.GetUID() != before[id].GetUID() && r.world.lasts(id.kind.Kind) && !passing(id.kind) {
			text := fmt.Sprintf("%s was deleted and created again", id)
			r.found(Problem{Different, text, r.stable(text, r.expect)})
			panic(stopped{})
		}
	}
	return settled
}
