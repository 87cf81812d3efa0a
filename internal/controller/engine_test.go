package controller_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object/resource"
)

// A recorder is a controller that records its events and tasks.
type recorder struct {
	keys []string
	see  func(q *controller.Queue, e *controller.Event)
	do   func(ctx context.Context, t controller.Task) error

	queue *controller.Queue
	mu    sync.Mutex
	lines []string
}

func (r *recorder) descriptor(name string) controller.Descriptor {
	return controller.Descriptor{Name: name, New: func(_ *controller.Objects, q *controller.Queue) controller.Controller {
		r.queue = q
		return r
	}}
}

func (r *recorder) Keys() []string { return r.keys }
func (r *recorder) Load()          { r.note("load") }
func (r *recorder) Loaded()        { r.note("loaded") }

func (r *recorder) See(e *controller.Event) {
	what := "see"
	if e.Loading {
		what = "find"
	}
	r.note(what + " " + strings.TrimPrefix(e.Key, resource.Root))
	if r.see != nil {
		r.see(r.queue, e)
	}
}

func (r *recorder) Do(ctx context.Context, t controller.Task) error {
	r.note("do " + strings.TrimPrefix(t.Key, resource.Root))
	if r.do != nil {
		return r.do(ctx, t)
	}
	return nil
}

func (r *recorder) note(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
}

// wants compares the records since the last call. Consecutive tasks are compared in any order, as
// they run concurrently.
func (r *recorder) wants(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for begin := 0; begin < len(r.lines); begin++ {
		end := begin
		for end < len(r.lines) && strings.HasPrefix(r.lines[end], "do ") {
			end++
		}
		slices.Sort(r.lines[begin:end])
		begin = end
	}
	if got := strings.Join(r.lines, ", "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r.lines = nil
}

func addKey(q *controller.Queue, e *controller.Event) { q.Add(controller.Task{Key: e.Key}) }

// A controller first receives each stored object under its keys, then does the tasks, and then
// receives events.
func TestWhatAControllerIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		narrow := &recorder{keys: []string{"/registry/namespaces/", "/registry/namespaces/b"}, see: addKey}
		wide := &recorder{keys: []string{""}}
		w := controllertest.New(t, []controller.Descriptor{narrow.descriptor("narrow"), wide.descriptor("wide")})
		for _, name := range []string{"namespace a", "namespace b", "hub h"} {
			w.Create(name)
		}
		w.Start()
		narrow.wants(t, "load, find namespaces/a, find namespaces/b, loaded, do namespaces/a, do namespaces/b")
		wide.wants(t, "load, find namespaces/a, find namespaces/b, find test.example.com/hubs/h, loaded")
		w.Create("namespace c")
		w.Create("hub i")
		narrow.wants(t, "see namespaces/c, do namespaces/c")
		wide.wants(t, "see namespaces/c, see test.example.com/hubs/i")
	})
}

// Keys that no controller observes are not loaded.
func TestOnlyWhatIsLookedAtIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{keys: []string{"/registry/namespaces/a", "/registry/test.example.com/hubs/", "/registry/namespaces/"}}
		idle := &recorder{}
		w := controllertest.New(t, []controller.Descriptor{r.descriptor("narrow"), idle.descriptor("idle")})
		for _, name := range []string{"namespace a", "hub h", "lead a/x"} {
			w.Create(name)
		}
		w.Start()
		r.wants(t, "load, find namespaces/a, find test.example.com/hubs/h, loaded")
		idle.wants(t, "load, loaded")
	})
}

// A busy controller does not block another.
func TestControllersDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		busy := &recorder{keys: []string{"/registry/test.example.com/hubs/"}, see: addKey, do: func(context.Context, controller.Task) error {
			<-end
			return nil
		}}
		quick := &recorder{keys: []string{"/registry/namespaces/"}, see: addKey}
		w := controllertest.New(t, []controller.Descriptor{busy.descriptor("busy"), quick.descriptor("quick")})
		for i := range 100 {
			w.Create(fmt.Sprint("hub ", i))
		}
		w.Create("namespace a")
		w.Start()
		quick.wants(t, "load, find namespaces/a, loaded, do namespaces/a")
		if busy.queue.Idle() {
			t.Error("the other controller is not busy")
		}
		close(end)
		synctest.Wait()
		if !busy.queue.Idle() {
			t.Error("not everything was done")
		}
	})
}

// A failed task is retried after a delay. A task for a kind that is not served is retried when the
// served kinds change.
func TestTasksThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failures := 3
		r := &recorder{keys: []string{"/registry/namespaces/"}, see: addKey, do: func(_ context.Context, task controller.Task) error {
			switch {
			case strings.HasSuffix(task.Key, "/unknown"):
				return &controller.UnknownError{What: "a Wheel"}
			case failures > 0:
				failures--
				return fmt.Errorf("%d failures are left", failures)
			}
			return nil
		}}
		w := controllertest.New(t, []controller.Descriptor{r.descriptor("failing")})
		w.Start()
		synctest.Wait()
		w.Create("namespace a")
		r.wants(t, "load, loaded, see namespaces/a, do namespaces/a")
		w.Sleep(controller.ShortestRetry)
		r.wants(t, "do namespaces/a")
		w.Sleep(controller.ShortestRetry)
		r.wants(t, "")
		w.Sleep(controller.ShortestRetry)
		r.wants(t, "do namespaces/a")
		w.Sleep(time.Hour)
		r.wants(t, "do namespaces/a")

		w.Create("namespace unknown")
		w.Sleep(time.Hour)
		r.wants(t, "see namespaces/unknown, do namespaces/unknown")
		w.Define("Wheel", true)
		synctest.Wait()
		r.wants(t, "do namespaces/unknown")
	})
}
