package policy

import (
	"testing"
	"testing/synctest"
	"time"
)

// A policy is compiled at its first use, and dropped when idle.
func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		compiled := 0
		p := &policy[int]{compile: func(*policySpec) *int { compiled++; return new(int) }}
		use := func(after time.Duration, want int) {
			t.Helper()
			time.Sleep(after)
			if p.compiled(); compiled != want {
				t.Errorf("compiled %d times, want %d", compiled, want)
			}
		}
		use(0, 1)
		for range 20 {
			use(idleAfter/2, 1)
		}
		use(2*idleAfter+time.Second, 2)
		time.Sleep(time.Hour)
		if p.now.Load() != nil {
			t.Error("an unused program is still cached")
		}
	})
}
