// Package linear checks that the server is linearizable: that it behaves as if there were one copy of
// every object and one request at a time.
//
// Clients create, read, update, delete and list the same few objects concurrently, and record each
// request, its response, and both times. A checker then searches for an order of all requests in which
// each lies between its start and its end, and each response is right. If there is none, a read was
// stale or an update was lost.
//
// The package has the model, which describes an object in a few lines. It knows nothing of the
// server's internals.
package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// objects is the number of objects. Few objects give many conflicts.
const objects = 4

// An operation is the kind of a request.
type operation int

const (
	create operation = iota
	get
	update      // if the object is unchanged since the client's last read
	patch       // unconditional
	remove      // unconditional
	removeExact // if the object is unchanged since the client's last read
	list
)

// An input is one request.
type input struct {
	operation operation
	object    int
	value     int   // to write; unique
	expects   int64 // precondition of an update or removeExact
}

// An output is one response.
type output struct {
	outcome  outcome
	now      entry // the object that was read or written
	all      state // from a list
	revision int64 // of a list
}

type outcome int

const (
	done outcome = iota
	absent
	exists
	conflict
	unknown // no response; the write may have happened, then or later
)

// unseen is the revision of a write without a response that no client has read.
const unseen = -1

// An entry is one object. The zero entry is absent.
type entry struct {
	value    int
	revision int64
}

// A state is all objects, and the revision of the last write.
type state struct {
	entries  [objects]entry
	revision int64
}

// model returns the allowed responses in each state, and the next state.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{state{}} },
		Step: func(s, in, out any) []any { return steps(s.(state), in.(input), out.(output)) },
		DescribeOperation: func(in, out any) string {
			return fmt.Sprintf("%+v: %+v", in, out)
		},
	}
	return m.ToModel()
}

// steps returns the possible states after a request.
func steps(s state, in input, out output) []any {
	if out.outcome != unknown {
		if ok, then := step(s, in, out); ok {
			return []any{then}
		}
		return nil
	}
	then := s
	old := s.entries[in.object]
	switch in.operation {
	case create:
		if old.revision == 0 {
			then.entries[in.object] = entry{in.value, unseen}
		}
	case patch:
		if old.revision != 0 {
			then.entries[in.object] = entry{in.value, unseen}
		}
	case update:
		if old.revision == in.expects {
			then.entries[in.object] = entry{in.value, unseen}
		}
	case remove:
		then.entries[in.object] = entry{}
	case removeExact:
		if old.revision == in.expects {
			then.entries[in.object] = entry{}
		}
	}
	if then == s {
		return []any{s}
	}
	return []any{s, then}
}

func step(s state, in input, out output) (bool, state) {
	old := s.entries[in.object]
	there := old.revision != 0
	switch in.operation {
	case get:
		return readable(there, out) && (!there || out.now == old), s
	case list:
		// Other objects advance the store's revision, so it may be higher.
		return out.outcome == done && out.revision >= s.revision && out.all.entries == s.entries, s
	case create:
		if there {
			return out.outcome == exists, s
		}
		return s.write(in, out)
	case patch:
		if !there {
			return out.outcome == absent, s
		}
		return s.write(in, out)
	case update:
		switch {
		case !there:
			return out.outcome == absent, s
		case in.expects != old.revision:
			return out.outcome == conflict, s
		}
		return s.write(in, out)
	default:
		switch {
		case !there:
			return out.outcome == absent, s
		case in.operation == removeExact && in.expects != old.revision:
			return out.outcome == conflict, s
		}
		s.entries[in.object] = entry{}
		return out.outcome == done, s
	}
}

func readable(there bool, out output) bool {
	return there && out.outcome == done || !there && out.outcome == absent
}

// write reports whether a response is right for a write, and returns the next state: the written
// value, at a higher revision.
func (s state) write(in input, out output) (bool, state) {
	if out.outcome != done || out.now.value != in.value || out.now.revision <= s.revision {
		return false, s
	}
	s.entries[in.object] = out.now
	s.revision = out.now.revision
	return true, s
}
