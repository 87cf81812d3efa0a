package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// room is the minimum allocation between two garbage collections. GOGC alone allows as much as is
// in use, so a small heap is collected often: a server with few objects would spend a tenth of its
// time on it.
const room = 24 << 20

// keepRoom adjusts GOGC after each collection, so that there is room. A GOGC of the environment
// takes precedence.
func keepRoom() {
	if os.Getenv("GOGC") == "" {
		afterNext(usual)
	}
}

// usual is the default of GOGC. A heap of much more than plenty gets sparing: most of it is headers of objects, which stay, and
// as much again for garbage would be more than the garbage of any request.
const (
	usual   = 100
	sparing = 50
	plenty  = 128 << 20
)

// afterNext adjusts GOGC after the next collection.
func afterNext(set int) {
	type unused struct{ _ *int }
	runtime.AddCleanup(&unused{}, func(set int) {
		if wanted := percent(inUse()); wanted < set || wanted > set+set/8 {
			debug.SetGCPercent(wanted)
			set = wanted
		}
		afterNext(set)
	}, set)
}

// percent returns the GOGC that gives room for live bytes in use.
func percent(live uint64) int {
	if live > plenty {
		return int(max(usual*plenty/live, sparing))
	}
	return int(min(max(usual, usual*room/max(live, 1)), hurried))
}

// inUse returns the live bytes at the last collection.
func inUse() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
