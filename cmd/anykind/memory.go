package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go keeps about as much free memory as is in use. That suits a busy server. A quiet server
// returns it to the system.
const (
	lookEvery = 30 * time.Second
	// startupTime is the time after which the work of the start is done. Most allocations until then
	// are garbage, which an idle server would keep; and most of the code of the start does not run
	// again.
	startupTime = 2 * time.Second
	// hurried is GOGC during the start. The first collection comes at 4 MB times GOGC / 100, and a
	// ready server has allocated less.
	hurried = 400
	// worthwhile is the minimum amount of memory to return.
	worthwhile = 16 << 20
)

// hurry reduces garbage collection during the start, when allocations are few and mostly retained.
// calm ends that.
func hurry() (calm func()) {
	before := debug.SetGCPercent(hurried)
	return func() { debug.SetGCPercent(before) }
}

// giveBack returns unused memory to the system, until ctx ends.
func giveBack(ctx context.Context) {
	timer := time.NewTimer(startupTime)
	defer timer.Stop()
	var before uint64
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		now := readHeap()
		if first || quiet(now.allocated-before, now.spare) {
			debug.FreeOSMemory()
			unload()
		}
		before = now.allocated
		timer.Reset(lookEvery)
	}
}

// quiet reports whether the server can return spare bytes, given the bytes allocated since the last
// check.
func quiet(allocated, spare uint64) bool { return spare > worthwhile && allocated < spare/4 }

// A heap has the memory statistics of the runtime.
type heap struct {
	allocated uint64 // since the start
	spare     uint64 // free, or garbage
}

func readHeap() heap {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/free:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	h := heap{allocated: value(0), spare: value(1)}
	if objects, live := value(2), value(3); objects > live {
		h.spare += objects - live
	}
	return h
}
