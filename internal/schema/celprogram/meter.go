package celprogram

import (
	"context"
	"runtime"

	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"
)

// A Meter counts the cost of an evaluation like cel-go's cost tracker, and stops it when the budget is
// exhausted.
//
// The tracker has a stack of step results, from which later steps take their arguments, and searches
// the whole stack for a missing one: a loop over n elements takes n² steps. The meter knows the stack
// position of the newest result of every step. The counts must be equal, including errors of the
// tracker, because costs decide about validity.
type Meter struct {
	// Context is the context of the caller.
	Context context.Context
	// Slots limits concurrent long evaluations, nil for no limit.
	Slots chan struct{}

	spent uint64
	stack []metered
	// newest is one more than where on the stack the last value of a step is, 0
	// if there is none.
	newest []int32
	args   []ref.Val // of a call, reused

	steps int  // since the last pause
	total int  // steps since the creation of the meter
	holds bool // one of the Slots
}

// metered is a value on the stack, and where its step had one before.
type metered struct {
	value  ref.Val
	step   int32
	before int32
}

const (
	// pauseAfter is the number of steps between two pauses.
	pauseAfter = 1 << 10
	// longAfter is the number of steps of a long evaluation. The number of concurrent long evaluations
	// is limited.
	longAfter = 1 << 18
)

// begin prepares for a program with a number of steps.
func (m *Meter) begin(steps int) {
	m.spent = 0
	clear(m.stack)
	m.stack = m.stack[:0]
	if cap(m.newest) < steps {
		m.newest = make([]int32, steps)
	}
	m.newest = m.newest[:steps]
	clear(m.newest)
}

// End releases the slot of a long evaluation.
func (m *Meter) End() {
	if m.holds {
		m.holds = false
		<-m.Slots
	}
}

// Depth returns the maximum size of the stack.
func (m *Meter) Depth() int { return cap(m.stack) }

func (m *Meter) push(step int32, value ref.Val) {
	m.stack = append(m.stack, metered{value, step, m.newest[step]})
	m.newest[step] = int32(len(m.stack))
}

// take removes the newest value of a step and all above it.
func (m *Meter) take(step int32) (ref.Val, bool) {
	at := int(m.newest[step]) - 1
	if at < 0 {
		return nil, false
	}
	value := m.stack[at].value
	for i := len(m.stack) - 1; i >= at; i-- {
		e := &m.stack[i]
		m.newest[e.step] = e.before
		e.value = nil
	}
	m.stack = m.stack[:at]
	return value, true
}

// takeAll removes the arguments of a call, the last one first. It stops at a missing one, which was
// not evaluated.
func (m *Meter) takeAll(steps []int32) ([]ref.Val, bool) {
	if cap(m.args) < len(steps) {
		m.args = make([]ref.Val, len(steps))
	}
	args := m.args[:len(steps)]
	for i := len(steps) - 1; i >= 0; i-- {
		var ok bool
		if args[i], ok = m.take(steps[i]); !ok {
			return nil, false
		}
	}
	return args, true
}

// done ends a step. It panics to stop the evaluation, as the interpreter expects.
func (m *Meter) done() {
	if m.spent > CallBudget {
		panic(interpreter.EvalCancelledError{Cause: interpreter.CostLimitExceeded, Message: OverBudget})
	}
	if m.steps++; m.steps >= pauseAfter {
		m.pause()
	}
}

// pause yields the processor, and stops a canceled evaluation.
func (m *Meter) pause() {
	m.total += m.steps
	m.steps = 0
	if m.Context.Err() == nil && m.total > longAfter && !m.holds && m.Slots != nil {
		select {
		case m.Slots <- struct{}{}:
			m.holds = true
		case <-m.Context.Done():
		}
	}
	if err := m.Context.Err(); err != nil {
		panic(interpreter.EvalCancelledError{Cause: interpreter.ContextCancelled, Message: err.Error()})
	}
	runtime.Gosched()
}

// meterOf is the meter of an evaluation, nil where constants are evaluated
// while a program is planned.
func meterOf(a interpreter.Activation) *Meter {
	for {
		switch v := a.(type) {
		case *Scope:
			return v.Meter
		case *interpreter.ExecutionFrame:
			a = v.Activation
		case nil:
			return nil
		default:
			a = a.Parent()
		}
	}
}
