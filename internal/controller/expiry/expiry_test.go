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

func in(t *testing.T, test func(w *world)) {
	w := &world{}
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
		w.queue = q
		return New(o, q)
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
	in(t, func(w *world) {
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
