package resource

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A value that concurrent callers request is computed once.
func TestDerivedOnce(t *testing.T) {
	var v Version
	var made atomic.Int64
	begun := make(chan bool)
	var group sync.WaitGroup
	get := func() {
		if got := v.Derived("key", func() any { made.Add(1); <-begun; return "value" }); got != "value" {
			t.Errorf("got %v", got)
		}
	}
	for range 8 {
		group.Go(get)
	}
	begun <- true
	close(begun)
	group.Wait()
	if got := v.Derived("another", func() any { return v.Derived("key", nil) }); made.Load() != 1 || got != "value" {
		t.Errorf("made %d times; %v", made.Load(), got)
	}
}
