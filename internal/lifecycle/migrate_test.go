package lifecycle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// of is what a migration is of.
func of(group, plural string) feature {
	return func(_ *world, t object.Tree) {
		t["spec"] = object.Tree{"resource": object.Tree{"group": group, "resource": plural}}
	}
}

// state is how a migration says it is doing.
func (w *world) state(name string) string {
	w.settle()
	var out []string
	status, _ := w.get("storageversionmigration " + name)["status"].(object.Tree)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		c := c.(object.Tree)
		out = append(out, fmt.Sprintf("%s=%s: %s", c["type"], c["status"], c["message"]))
	}
	return strings.Join(out, "\n")
}

func (w *world) expect(what, got, want string) {
	w.t.Helper()
	if got != want {
		w.t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

const succeeded = "Running=False: Migration completed\nSucceeded=True: Migration completed"

// What is stored as it would be stored again needs nothing, and the kind need not
// be a custom one.
func TestMigrateBuiltIn(t *testing.T) {
	in(t, func(w *world) {
		w.create("configmap dev/a")
		before := w.get("configmap dev/a")
		w.create("storageversionmigration m", of("", "configmaps"))
		w.expect("migration", w.state("m"), succeeded)
		if after := w.get("configmap dev/a"); !object.Equal(before, after) {
			t.Errorf("the object is %v and was %v", after, before)
		}
	})
}

// A migration waits a minute for a kind that is not served.
func TestMigrateUnknownKind(t *testing.T) {
	in(t, func(w *world) {
		w.create("storageversionmigration m", of("test.example.com", "things"))
		w.sleep(30 * time.Second)
		w.expect("within the minute", w.state("m"), "Running=True: The migration is running")
		w.sleep(time.Minute)
		w.expect("after it", w.state("m"), "Running=False: Migration completed\nFailed=True: resource does not exist in discovery")
	})
}

func TestMigrateKindThatComes(t *testing.T) {
	in(t, func(w *world) {
		w.create("storageversionmigration m", of("test.example.com", "things"))
		w.sleep(10 * time.Second)
		w.catalog.Swap(w.catalog.Set().With(nil, []*resource.Definition{custom("Thing", false)}))
		w.sleep(time.Minute)
		w.expect("migration", w.state("m"), succeeded)
	})
}

// Of the migrations of one resource, one runs at a time; those that were left
// half done are taken up by the next process.
func TestMigrateOneByOne(t *testing.T) {
	in(t, func(w *world) {
		w.create("storageversionmigration a", of("test.example.com", "things"))
		w.sleep(time.Second)
		w.create("storageversionmigration b", of("test.example.com", "things"))
		w.sleep(time.Second)
		w.expect("the second", w.state("b"), "")
		w.stop()
		w.catalog.Swap(w.catalog.Set().With(nil, []*resource.Definition{custom("Thing", false)}))
		w.start()
		w.expect("the first", w.state("a"), succeeded)
		w.expect("the second", w.state("b"), succeeded)
	})
}
