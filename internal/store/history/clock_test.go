package history

import (
	"fmt"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// A clock that is set back does not change the order of times: a later change has the time of the one before at least, also after a
// restart.
func TestClockThatIsSetBack(t *testing.T) {
	dir := t.TempDir()
	begin := time.UnixMilli(1_700_000_000_000).UTC()
	now := begin
	o := Options{Now: func() time.Time { return now }}
	s := newStore(t, newBolt(t, dir), dir, o)
	var revision int64
	write := func(minutes int) int64 {
		t.Helper()
		now = begin.Add(time.Duration(minutes) * time.Minute)
		var err error
		if revision, err = s.Commit(t.Context(), kv.Write{Key: "/registry/a", Value: fmt.Append(nil, minutes, revision), Expect: revision}); err != nil {
			t.Fatal(err)
		}
		return revision
	}
	first := write(10)
	write(20)
	write(5)
	if err := s.settle(); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = newStore(t, newBolt(t, dir), dir, o)
	again := write(7)
	last := write(30)
	var times []float64
	for p, err := range s.Changes(t.Context(), "/registry/a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, p.Time.Sub(begin).Minutes())
	}
	if fmt.Sprint(times) != "[10 20 20 20 30]" {
		t.Errorf("the changes have the minutes %v", times)
	}
	for minutes, want := range map[int]int64{10: first, 19: first, 20: again, 29: again, 30: last, 99: last} {
		if got, err := s.At(t.Context(), begin.Add(time.Duration(minutes)*time.Minute)); got != want || err != nil {
			t.Errorf("the revision after %d minutes is %d, %v, want %d", minutes, got, err, want)
		}
	}
}
