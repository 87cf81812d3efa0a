package verify

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A clock decides how time passes in a run, and how long its faults take.
type clock interface {
	// begin prepares the process for all runs, until undo.
	begin() (undo func())
	// execute calls a function in which time passes by this clock.
	execute(seed uint64, f func())
	// wait returns when the server has executed the requests that passed, and, in a bubble, when the program waits for something.
	wait(g *gate)
	// durations returns the durations of a run that is at rest after quiet.
	durations(quiet time.Duration) durations
	// inMemory reports whether server and program are in one process.
	inMemory() bool
}

// durations are the times of a run.
type durations struct {
	// all is World.Time, unless the World has one.
	all time.Duration
	// quiet is the time without a change after which the program has come to rest, in the expected state.
	quiet time.Duration
	// patience is that time for any other state. In a bubble, it exceeds the longest backoff of controllers, 1,000
	// seconds. It begins again with a fault.
	patience time.Duration
	// settle limits one Settle: a program that still changes objects then does so forever.
	settle time.Duration
	// latency is the time that a request or an event takes.
	latency time.Duration
	// apart is the distance in time between the runs without faults.
	apart time.Duration
	// restart is the pause before the first restart of a program that has exited. Each further one is twice as long.
	restart time.Duration

	// lag is the time for which held events stay away from an idle program.
	lag time.Duration
	// stall is the duration of a Stall, and stallAlone that before the user acts. Programs of Kubernetes
	// wait five minutes at most for the events of their own writes.
	stall, stallAlone time.Duration
	// slow is the duration of a Slow and of a SlowResponse, and slowAlone is the time until the user acts. A
	// webhook times out after 30 seconds at most.
	slow, slowAlone time.Duration
	partition       time.Duration
	pause           time.Duration
}

// A bubble is the clock of a program in the process of the test: one bubble of testing/synctest for each run.
type bubble struct{ t *testing.T }

// begin makes runs repeatable: one processor, so that the order of goroutines depends on little else than their channels.
func (b bubble) begin() (undo func()) {
	processors, handlers := runtime.GOMAXPROCS(1), withoutBackoff()
	b.t.Setenv("GODEBUG", os.Getenv("GODEBUG")+",randseednop=0")
	return func() { runtime.GOMAXPROCS(processors); handlers() }
}

func (b bubble) execute(seed uint64, f func()) {
	ended := false
	defer func() {
		// Goroutines of the program that outlive its context are no problem of the run. Time stands still for them.
		if p := recover(); p != nil && !(ended && strings.HasPrefix(fmt.Sprint(p), "deadlock:")) {
			panic(p)
		}
	}()
	synctest.Test(b.t, func(t *testing.T) {
		seedRandom(t, seed)
		f()
		ended = true
	})
}

func (bubble) wait(*gate) { synctest.Wait() }

func (bubble) durations(quiet time.Duration) durations {
	return durations{
		all: 30 * time.Second, quiet: orDefault(quiet, 10*time.Second), patience: 20 * time.Minute, settle: 6 * time.Hour,
		latency: time.Millisecond, apart: 61 * time.Minute, restart: 10 * time.Second,
		lag: 5 * time.Second, stall: 10 * time.Minute, stallAlone: 6 * time.Minute,
		slow: 20 * time.Second, slowAlone: 10 * time.Second, partition: time.Minute, pause: time.Hour,
	}
}

func (bubble) inMemory() bool { return true }

// A realTime clock is that of a program in a process of its own.
type realTime struct{}

func (realTime) begin() (undo func())       { return func() {} }
func (realTime) execute(_ uint64, f func()) { f() }
func (realTime) inMemory() bool             { return false }

// grace is the time that an event takes from the server to the gate, and a request from the program.
const grace = 3 * time.Millisecond

// wait waits for the requests that the gate let pass. One that takes longer than a second is not waited for.
func (realTime) wait(g *gate) {
	for end := time.Now().Add(time.Second); g.passing() && time.Now().Before(end); {
		time.Sleep(grace / 10)
	}
	time.Sleep(grace)
}

// durations returns times that are longer than those of a well-behaved program, and short enough for many runs.
func (realTime) durations(quiet time.Duration) durations {
	quiet = orDefault(quiet, 2*time.Second)
	return durations{
		all: 10 * time.Minute, quiet: quiet, patience: 10 * quiet, settle: 100 * quiet,
		apart: 1100 * time.Millisecond, restart: time.Second,
		lag: 2 * quiet, stall: 10 * quiet, stallAlone: 5 * quiet,
		slow: 3 * quiet, slowAlone: quiet, partition: 3 * quiet, pause: 5 * quiet,
	}
}
