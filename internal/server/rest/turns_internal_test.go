package rest

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Answers of the same length end one after another, the older ones first. A short answer does not wait
// for the end of a long one.
func TestTurns(t *testing.T) {
	for _, beside := range []bool{false, true} { // other requests
		synctest.Test(t, func(t *testing.T) { testTurns(t, beside) })
	}
}

func testTurns(t *testing.T, beside bool) {
	const slice = 4 * time.Millisecond // that an answer takes before each write
	turns := &turns{most: 1}
	var mu sync.Mutex
	var ended []string
	var wait sync.WaitGroup
	answer := func(name string, slices int) {
		one := turns.next()
		wait.Go(func() {
			one.take()
			for range slices {
				time.Sleep(slice)
				if beside {
					turns.other()
				}
				one.lend() // and writes
				one.back()
			}
			one.give()
			mu.Lock()
			defer mu.Unlock()
			ended = append(ended, name)
		})
		synctest.Wait() // The answer renders or waits.
	}
	answer("long", 50)
	for _, name := range []string{"a", "b", "c"} {
		answer(name, 2)
	}
	time.Sleep(5 * slice)
	answer("late", 2)
	wait.Wait()
	if want := []string{"a", "b", "c", "late", "long"}; !slices.Equal(ended, want) {
		t.Errorf("beside others %v: answers end in the order %v, want %v", beside, ended, want)
	}
	if turns.taken != 0 || len(turns.waiting) != 0 {
		t.Errorf("%d turns are taken at the end and %d answers wait", turns.taken, len(turns.waiting))
	}
}

// A long loop without a write yields to shorter answers.
func TestTurnYields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &turns{most: 1}
		long, short := turns.next(), turns.next()
		long.take()
		var done bool
		go func() {
			short.take()
			done = true
			short.give()
		}()
		synctest.Wait()
		if long.yield(); done {
			t.Error("an answer yields at once")
		}
		time.Sleep(turnQuantum)
		if long.yield(); !done {
			t.Error("a short answer waits for a long one")
		}
		long.give()
	})
}

// Lists leave a processor to other requests while there are any.
func TestTurnsLeaveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := &turns{most: 2}
		rendering := func() int64 {
			var n atomic.Int64
			for range 3 {
				one := turns.next()
				go func() {
					one.take()
					n.Add(1)
					time.Sleep(time.Millisecond)
					one.give()
				}()
			}
			synctest.Wait()
			return n.Load()
		}
		for _, tt := range []struct {
			other bool
			wait  time.Duration
			want  int64
		}{{false, 0, 2}, {true, 0, 1}, {false, othersLast / 2, 1}, {false, othersLast, 2}} {
			time.Sleep(tt.wait)
			if tt.other {
				turns.other()
			}
			if got := rendering(); got != tt.want {
				t.Errorf("%+v: %d lists are rendered at a time", tt, got)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// Beside other requests, a write keeps the turn of its list, unless the client reads slowly while other lists wait.
func TestWritesKeepTurns(t *testing.T) {
	for _, most := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) { testWritesKeepTurns(t, &turns{most: most}) })
	}
}

func testWritesKeepTurns(t *testing.T, turns *turns) {
	one, other := turns.next(), turns.next()
	writes := func(d time.Duration) time.Duration { // returns the wait of the other list
		began := time.Now()
		waited := make(chan time.Duration, 1)
		one.take()
		go func() {
			other.take()
			waited <- time.Since(began)
			other.give()
		}()
		synctest.Wait()
		one.lend()
		time.Sleep(d)
		one.back()
		one.give()
		synctest.Wait()
		return <-waited
	}
	for i, tt := range []struct {
		write, waits time.Duration
	}{
		{writeQuantum / 2, writeQuantum / 2}, // as long as the write
		{10 * writeQuantum, writeQuantum},    // the write loses the turn
		{10 * writeQuantum, 0},               // the next one gives it away
		{writeQuantum / 2, 0},                // so does this one, which is fast
		{writeQuantum / 2, writeQuantum / 2},
	} {
		turns.other()
		if waited := writes(tt.write); waited < tt.waits || waited > tt.waits+2*pollPause {
			t.Errorf("write %d: the other list waited %v, want %v", i, waited, tt.waits)
		}
	}
	time.Sleep(2 * othersLast)
	turns.most = 1 // two lists would not wait
	if waited := writes(time.Second); waited != 0 {
		t.Errorf("without other requests, a list waited %v for the write of another one", waited)
	}
	if turns.taken != 0 || len(turns.waiting) != 0 || len(turns.lent) != 0 {
		t.Errorf("%d turns are taken at the end, %d answers wait and %d write", turns.taken, len(turns.waiting), len(turns.lent))
	}
}
