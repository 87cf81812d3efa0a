package expiry

import (
	"sync/atomic"
	"testing"
	"time"
)

// The age of an Event comes from its own timestamps, so a restart does not extend its life. If the
// clock is set forward or back, Events expire earlier or later by at most that amount.
func TestEventsWhenTheClockIsSet(t *testing.T) {
	const ttl = time.Hour
	for _, tt := range []struct {
		name       string
		set        time.Duration
		kept, gone time.Duration // the Event surely exists at kept, and surely not at gone
	}{
		{"not at all", 0, ttl - time.Minute, ttl + 2*time.Minute},
		{"forward by less than an event is kept", 30 * time.Minute, ttl/2 - time.Minute, ttl + 2*time.Minute},
		{"forward by a day", 24 * time.Hour, 0, ttl + 2*time.Minute},
		{"back by less than an event is kept", -30 * time.Minute, ttl - time.Minute, 2*ttl + 2*time.Minute},
		{"back by a day", -24 * time.Hour, ttl - time.Minute, 26*ttl + 2*time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in(t, DefaultTTL, func(w *world) {
				var set atomic.Int64
				w.Stop()
				w.Now = func() time.Time { return time.Now().Add(time.Duration(set.Load())) }
				w.Start()
				w.Create("event dev/a", about)
				w.has("a")
				set.Store(int64(tt.set))
				w.Sleep(tt.kept)
				w.has("a")
				w.Sleep(tt.gone - tt.kept)
				w.has("")
			})
		})
	}
}
