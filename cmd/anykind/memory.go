package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Go keeps about as much free memory as is in use, for a server that goes on as
// before. One that has become quiet gives it back.
const (
	lookEvery = 30 * time.Second
	// settled is how long after the start all is done that comes with it. Most of what was
	// allocated until then is garbage, which a server that nobody asks would keep; and
	// most of the code that ran does not run again.
	settled = 2 * time.Second
	// hurried is GOGC for a server that starts. A first collection comes at 4 MB times that by
	// 100, and a server is ready with less.
	hurried = 400
	// worthwhile is how much must be to be given back.
	worthwhile = 16 << 20
)

// hurry makes a process that starts collect less garbage: what it allocates then is little and
// is mostly kept. calm ends that.
func hurry() (calm func()) {
	before := debug.SetGCPercent(hurried)
	return func() { debug.SetGCPercent(before) }
}

// giveBack gives memory that is not needed back to the system, until ctx ends.
func giveBack(ctx context.Context) {
	timer := time.NewTimer(settled)
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

// quiet reports whether a server that has allocated so many bytes since the last look
// will do without those that can be spared, for a while.
func quiet(allocated, spare uint64) bool { return spare > worthwhile && allocated < spare/4 }

// A heap is what the runtime says of its memory.
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
