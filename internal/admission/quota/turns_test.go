package quota

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// One writer has the turn of a namespace at a time, and gets the revision of the previous write. A
// canceled wait does not consume the turn, and an unused namespace leaves no entry.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			turns   Turns
			all     sync.WaitGroup
			writing bool
			last    int64
		)
		_, end, err := turns.Take(t.Context(), "dev")
		if err != nil {
			t.Fatal(err)
		}
		_, other, err := turns.Take(t.Context(), "ops")
		if err != nil {
			t.Fatalf("another namespace waits: %v", err)
		}
		other(0)
		for i := range 64 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%4)*time.Second)
				defer cancel()
				after, end, err := turns.Take(ctx, "dev")
				if err != nil {
					return
				}
				if writing || after != last {
					t.Errorf("after %d, want %d; a concurrent writer: %v", after, last, writing)
				}
				writing = true
				time.Sleep(time.Millisecond)
				writing, last = false, last+1
				end(last)
			})
		}
		time.Sleep(1500 * time.Millisecond)
		end(0)
		all.Wait()
		if last != 32 || len(turns.rows) != 0 {
			t.Errorf("%d had their turn, %d namespaces are left", last, len(turns.rows))
		}
	})
}
