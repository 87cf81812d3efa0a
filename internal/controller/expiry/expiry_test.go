package expiry

import (
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

type world struct {
	*controllertest.World
	queue *controller.Queue // of the last started controller
}

func in(t *testing.T, ttl time.Duration, test func(w *world)) {
	w := &world{}
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
		w.queue = q
		return New(ttl)(o, q)
	}}}, func(world *controllertest.World) {
		w.World = world
		test(w)
	})
}

func about(_ *controllertest.World, t object.Tree) {
	t["involvedObject"] = object.Tree{"namespace": "dev"}
}

// Events are deleted an hour after their last write, even across a restart. Without Events there is
// no timer.
func TestEvents(t *testing.T) {
	in(t, DefaultTTL, func(w *world) {
		w.Create("event dev/a", about)
		w.Sleep(30 * time.Minute)
		w.Create("event dev/b", about)
		w.Create("event dev/kept", about)
		w.has("a b kept")
		w.Sleep(31 * time.Minute)
		w.has("b kept")
		w.Edit("event dev/kept", func(t object.Tree) { t["lastTimestamp"] = object.Timestamp(time.Now()) })
		w.Stop()
		w.Sleep(30 * time.Minute)
		w.has("b kept")
		w.Start()
		w.has("kept")
		w.Sleep(32 * time.Minute)
		w.has("")
		if !w.queue.Idle() {
			t.Error("a task is waiting")
		}
	})
}

// Another TTL is as exact as a minute, and as half of a shorter one. Without a TTL, Events stay.
func TestTTL(t *testing.T) {
	for ttl, wait := range map[time.Duration]time.Duration{10 * time.Second: 21 * time.Second, 5 * time.Hour: 5*time.Hour + 2*time.Minute, -1: 1000 * time.Hour} {
		in(t, ttl, func(w *world) {
			w.Create("event dev/a", about)
			w.Sleep(ttl - time.Second)
			w.has("a")
			w.Sleep(wait - ttl)
			w.has(map[bool]string{true: "a"}[ttl < 0])
		})
	}
}

// has compares the names of the Events.
func (w *world) has(want string) {
	w.T.Helper()
	w.Wait()
	var names []string
	page, _ := w.Backend.List(w.Ctx, kv.Range{Prefix: w.Kinds["event"].NamespacePrefix("dev")})
	for _, r := range page.Records {
		names = append(names, r.Key[strings.LastIndexByte(r.Key, '/')+1:])
	}
	if got := strings.Join(names, " "); got != want {
		w.T.Fatalf("there are events %q, want %q", got, want)
	}
}
