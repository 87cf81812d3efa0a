package etcdkv

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Callers during a request share the next request.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := int64(0)
		ask := func() (int64, error) {
			asked++
			time.Sleep(time.Second)
			return asked, nil
		}
		var q turns
		first := q.join(ask)
		synctest.Wait()
		second, third := q.join(ask), q.join(ask)
		for i, got := range []*turn{first, second, third} {
			<-got.done
			if want := int64(min(i+1, 2)); got.revision != want || got.err != nil {
				t.Errorf("who came as number %d got the answer %d, %v, want %d", i+1, got.revision, got.err, want)
			}
		}
	})
}

// After a failed request, the callers that came meanwhile do not wait for another one.
func TestTurnsWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("it is not there")
		began := time.Now()
		ask := func() (int64, error) {
			time.Sleep(time.Second)
			return 0, gone
		}
		var q turns
		first := q.join(ask)
		synctest.Wait()
		for _, got := range []*turn{first, q.join(ask)} {
			if <-got.done; got.err != gone {
				t.Errorf("got %v, want %v", got.err, gone)
			}
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("it was waited for %v", waited)
		}
		// A later caller sends a new request.
		again := q.join(func() (int64, error) { return 7, nil })
		if <-again.done; again.revision != 7 || again.err != nil {
			t.Errorf("then the answer was %d, %v", again.revision, again.err)
		}
	})
}
