package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// room is how much is allocated from one collection of garbage to the next, at least. By GOGC
// alone it is as much as is in use, so that who has little collects often: a server with few
// objects would spend a tenth of its time on it.
const room = 24 << 20

// keepRoom sets GOGC anew after each collection, so that there is room. Who has set it in the
// environment decides.
func keepRoom() {
	if os.Getenv("GOGC") == "" {
		afterNext(usual)
	}
}

// usual is GOGC where nobody has set it.
const usual = 100

// afterNext waits for the next collection, with GOGC as it is set now.
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

// percent is the GOGC by which there is room where so many bytes are in use.
func percent(live uint64) int {
	return int(min(max(usual, usual*room/max(live, 1)), hurried))
}

// inUse is how much the last collection has found to be in use.
func inUse() uint64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	return live[0].Value.Uint64()
}
