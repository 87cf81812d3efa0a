package published

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/server/aggregate"
)

// A said is the answer of a server and its delay.
type said struct {
	value string
	err   error
	after time.Duration
}

// A desk puts one server behind a shelf.
type desk struct {
	t           *testing.T
	shelf       shelf[string]
	said        said
	requestedAt int
	etag        string // of the request
}

func newDesk(t *testing.T) *desk {
	d := &desk{t: t}
	d.shelf = shelf[string]{idle: 5 * time.Minute, longest: longest, fetch: func(ctx context.Context, _ []*aggregate.Service, before, etag string) (string, string, error) {
		d.requestedAt++
		d.etag = etag
		s := d.said
		select {
		case <-time.After(s.after):
		case <-ctx.Done():
			return "", "", ctx.Err()
		}
		if s.err != nil {
			return "", "", s.err
		}
		return s.value, "etag of " + s.value, nil
	}}
	return d
}

func service(available bool) *aggregate.Service {
	return &aggregate.Service{Group: "a.dev", Version: "v1", Available: available, Backend: &aggregate.Backend{}}
}

// get expects a value, or an error, after a delay.
func (d *desk) get(s *aggregate.Service, want string, failed bool, after time.Duration) {
	d.t.Helper()
	start := time.Now()
	got, _, err := d.shelf.get(d.t.Context(), []*aggregate.Service{s}, ClientTimeout)
	if took := time.Since(start); got != want || failed != (err != nil) || took != after {
		d.t.Errorf("got %q and the error %v after %v, want %q, an error: %t, after %v", got, err, took, want, failed, after)
	}
}

func (d *desk) wasAsked(times int) {
	d.t.Helper()
	synctest.Wait()
	if d.requestedAt != times {
		d.t.Errorf("it was asked %d times, want %d", d.requestedAt, times)
	}
}

// A page in use is requested once a minute, in the background and by ETag.
func TestAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(t), service(true)
		d.said = said{value: "one", after: time.Second}
		d.get(s, "one", false, time.Second)
		d.get(s, "one", false, 0)
		d.wasAsked(1)
		d.said.value = "two"
		time.Sleep(refresh)
		d.get(s, "one", false, 0)
		time.Sleep(2 * time.Second)
		d.get(s, "two", false, 0)
		d.wasAsked(2)
		if d.etag != "etag of one" {
			t.Errorf("it was asked by %q", d.etag)
		}
		// A client waits for the successor of a page that is too old.
		d.said.value = "three"
		time.Sleep(old)
		d.get(s, "three", false, time.Second)
		// A client waits after a change of the APIService.
		d.said.value = "four"
		d.get(service(true), "four", false, time.Second)
		d.wasAsked(4)
		time.Sleep(20 * time.Minute)
	})
}

// A server that hangs delays the first clients only, and not for long.
func TestHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(t), service(true)
		d.said = said{after: time.Hour}
		d.get(s, "", true, ClientTimeout)
		d.get(s, "", true, 0)
		time.Sleep(longest)
		d.get(s, "", true, 0)
		d.get(s, "", true, 0)
		d.wasAsked(2)
		d.said = said{value: "one"}
		time.Sleep(longest + time.Second)
		d.get(s, "", true, 0)
		synctest.Wait()
		d.get(s, "one", false, 0)
		time.Sleep(20 * time.Minute)
	})
}

// A failing server is requested again after growing pauses; the previous value accompanies the
// error. The OpenAPI of an unavailable server is not requested.
func TestFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(t), service(true)
		d.said = said{value: "one"}
		d.get(s, "one", false, 0)
		d.said = said{err: errors.New("down")}
		time.Sleep(refresh)
		d.get(s, "one", false, 0)
		synctest.Wait()
		for range 100 {
			d.get(s, "one", true, 0)
			time.Sleep(100 * time.Millisecond)
		}
		d.wasAsked(6) // at 0, 0.5, 1.5, 3.5 and 7.5 seconds, besides the first
		d.get(service(false), "one", true, 0)
		d.wasAsked(6)
		time.Sleep(20 * time.Minute)
	})
}

// The resources of an unavailable server are requested, but no client waits for them:
// kube-apiserver shows them whatever the state of the APIService.
func TestUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(t), service(false)
		d.shelf.anyway = true
		d.said = said{value: "one", after: time.Second}
		d.get(s, "", true, 0)
		time.Sleep(time.Second)
		synctest.Wait()
		d.get(s, "one", false, 0)
		d.wasAsked(1)
		time.Sleep(20 * time.Minute)
	})
}

// A page that is not used is dropped.
func TestForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, s := newDesk(t), service(true)
		d.said = said{value: "one"}
		d.get(s, "one", false, 0)
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		if d.shelf.pages != nil || d.shelf.timer != nil {
			t.Error("something is left")
		}
	})
}
