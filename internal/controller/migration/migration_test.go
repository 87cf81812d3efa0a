package migration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

type world struct{ *controllertest.World }

func in(t *testing.T, test func(w *world)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) { test(&world{w}) })
}

// of is a feature of a migration: its resource.
func of(group, plural string) controllertest.Feature {
	return func(_ *controllertest.World, t object.Tree) {
		t["spec"] = object.Tree{"resource": object.Tree{"group": group, "resource": plural}}
	}
}

// state returns the state of a migration.
func (w *world) state(name string) string {
	w.Wait()
	var out []string
	status, _ := w.Get("storageversionmigration " + name)["status"].(object.Tree)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		c := c.(object.Tree)
		out = append(out, fmt.Sprintf("%s=%s: %s", c["type"], c["status"], c["message"]))
	}
	return strings.Join(out, "\n")
}

func (w *world) expect(what, got, want string) {
	w.T.Helper()
	if got != want {
		w.T.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

const succeeded = "Running=False: Migration completed\nSucceeded=True: Migration completed"

// Objects already in the storage form are not written. Built-in kinds can be migrated, too.
func TestMigrateBuiltIn(t *testing.T) {
	in(t, func(w *world) {
		w.Create("configmap dev/a")
		before := w.Get("configmap dev/a")
		w.Create("storageversionmigration m", of("", "configmaps"))
		w.expect("migration", w.state("m"), succeeded)
		if after := w.Get("configmap dev/a"); !object.Equal(before, after) {
			t.Errorf("the object is %v and was %v", after, before)
		}
	})
}

// A migration waits a minute for an unserved kind.
func TestMigrateUnknownKind(t *testing.T) {
	in(t, func(w *world) {
		w.Create("storageversionmigration m", of("test.example.com", "things"))
		w.Sleep(30 * time.Second)
		w.expect("within the minute", w.state("m"), "Running=True: The migration is running")
		w.Sleep(time.Minute)
		w.expect("after it", w.state("m"), "Running=False: Migration completed\nFailed=True: resource does not exist in discovery")
	})
}

func TestMigrateKindThatComes(t *testing.T) {
	in(t, func(w *world) {
		w.Create("storageversionmigration m", of("test.example.com", "things"))
		w.Sleep(10 * time.Second)
		w.Catalog.Swap(w.Catalog.Set().With(nil, []*resource.Definition{controllertest.Custom("Thing", false)}))
		w.Sleep(time.Minute)
		w.expect("migration", w.state("m"), succeeded)
	})
}

// The migrations of a resource run one at a time. The next process continues interrupted ones.
func TestMigrateOneByOne(t *testing.T) {
	in(t, func(w *world) {
		w.Create("storageversionmigration a", of("test.example.com", "things"))
		w.Sleep(time.Second)
		w.Create("storageversionmigration b", of("test.example.com", "things"))
		w.Sleep(time.Second)
		w.expect("the second", w.state("b"), "")
		w.Stop()
		w.Catalog.Swap(w.Catalog.Set().With(nil, []*resource.Definition{controllertest.Custom("Thing", false)}))
		w.Start()
		w.expect("the first", w.state("a"), succeeded)
		w.expect("the second", w.state("b"), succeeded)
	})
}
