package main

import (
	"runtime"
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

// What has become garbage can be spared, and what is in use cannot.
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
