package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestQuiet(t *testing.T) {
	const mb = 1 << 20
	for _, c := range []struct {
		allocated, spare uint64
		want             bool
	}{
		{0, 0, false},
		{0, 10 * mb, false}, // too little
		{1 * mb, 60 * mb, true},
		{30 * mb, 60 * mb, false}, // it will soon be needed
		{500 * mb, 60 * mb, false},
		{30 * mb, 600 * mb, true},
	} {
		if got := quiet(c.allocated, c.spare); got != c.want {
			t.Errorf("with %d MB allocated and %d MB to spare: %v", c.allocated/mb, c.spare/mb, got)
		}
	}
}

// Between two collections there is room, also where little is in use, and never less than by the
// usual GOGC, except in a large heap.
func TestPercent(t *testing.T) {
	const mb = 1 << 20
	for live, want := range map[uint64]int{0: hurried, 1 * mb: hurried, 8 * mb: 300, 12 * mb: 200, 24 * mb: usual, 128 * mb: usual, 200 * mb: 64, 500 * mb: sparing} {
		if got := percent(live); got != want {
			t.Errorf("GOGC is %d with %d MB in use, want %d", got, live/mb, want)
		}
	}
}

// GOGC follows what is in use from one collection to the next.
func TestKeepRoom(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(usual)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	keepRoom()
	set := func() int {
		is := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(is)
		return int(is[0].Value.Uint64())
	}
	await := func(what string, reached func() bool) {
		t.Helper()
		for range 10_000 {
			if runtime.GC(); reached() {
				return
			}
			runtime.Gosched()
		}
		t.Errorf("%s: GOGC is %d with %d bytes in use", what, set(), inUse())
	}
	kept := make([]byte, 2*room)
	await("with much in use", func() bool { return set() == usual })
	runtime.KeepAlive(kept)
	kept = nil
	await("with little in use", func() bool { return set() > usual })
}

// Garbage counts as spare memory, memory in use does not.
func TestReadHeap(t *testing.T) {
	const size = 64 << 20
	runtime.GC()
	before := readHeap()
	kept := make([]byte, size)
	runtime.GC()
	using := readHeap()
	if n := using.allocated - before.allocated; n < size || n > 2*size {
		t.Errorf("%d bytes were allocated, not %d", n, size)
	}
	if using.spare > before.spare+size/2 {
		t.Errorf("%d bytes to spare, which are in use", using.spare)
	}
	runtime.KeepAlive(kept)
	kept = nil
	runtime.GC()
	if after := readHeap(); after.spare < using.spare+size/2 {
		t.Errorf("%d bytes to spare, and %d before %d became garbage", after.spare, using.spare, size)
	}
}
