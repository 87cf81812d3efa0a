package lifecycle

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphaning  = metav1.DeletePropagationOrphan
)

// What owns goes first, and what it owned follows, kinds mixed.
func TestBackground(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/parent")
		w.create("configmap dev/child", owner("lead dev/parent"))
		w.create("lead dev/grandchild", owner("configmap dev/child"))
		w.create("lead dev/stranger")
		w.shows(`
			configmap dev/child <- parent
			lead dev/grandchild <- child
			lead dev/parent
			lead dev/stranger`)
		w.delete("lead dev/parent", "")
		w.shows(`lead dev/stranger`)
	})
}

// An owner in no namespace may own objects anywhere.
func TestClusterScopedOwner(t *testing.T) {
	in(t, func(w *world) {
		w.create("namespace ops")
		w.create("hub h")
		w.create("hub below", owner("hub h"))
		w.create("lead dev/a", owner("hub h"))
		w.create("lead ops/a", owner("hub h"))
		w.delete("hub h", background)
		w.shows(`namespace ops`)
	})
}

// A dependent that somebody else has to finalize does not hold its owner.
func TestBackgroundDoesNotWait(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/parent")
		w.create("lead dev/child", blocking("lead dev/parent"), finalizer("test.example.com/f"))
		w.delete("lead dev/parent", background)
		w.shows(`lead dev/child [test.example.com/f] going <- parent!`)
		w.release("lead dev/child")
		w.shows(``)
	})
}

// A dependent goes with the last of its owners, and forgets those that go before.
func TestTwoOwners(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/mother")
		w.create("lead dev/father")
		w.create("lead dev/child", owner("lead dev/mother"), owner("lead dev/father"))
		w.delete("lead dev/mother", "")
		w.shows(`
			lead dev/child <- father
			lead dev/father`)
		w.delete("lead dev/father", "")
		w.shows(``)
	})
}

// The owner stays until those dependents are gone that block it; others are
// deleted but not awaited.
func TestForeground(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/parent")
		w.create("lead dev/blocks", blocking("lead dev/parent"), finalizer("test.example.com/f"))
		w.create("lead dev/does-not", owner("lead dev/parent"), finalizer("test.example.com/f"))
		w.delete("lead dev/parent", foreground)
		w.shows(`
			lead dev/blocks [test.example.com/f] going <- parent!
			lead dev/does-not [test.example.com/f] going <- parent
			lead dev/parent [foregroundDeletion] going`)
		w.release("lead dev/blocks")
		w.shows(`lead dev/does-not [test.example.com/f] going <- parent`)
	})
}

// Dependents that own something wait for that in turn.
func TestForegroundGoesDown(t *testing.T) {
	in(t, func(w *world) {
		w.create("hub top")
		w.create("lead dev/middle", blocking("hub top"))
		w.create("configmap dev/low", blocking("lead dev/middle"), finalizer("test.example.com/f"))
		w.delete("hub top", foreground)
		w.shows(`
			configmap dev/low [test.example.com/f] going <- middle!
			hub top [foregroundDeletion] going
			lead dev/middle [foregroundDeletion] going <- top!`)
		w.release("configmap dev/low")
		w.shows(``)
	})
}

// A dependent with another owner is let go instead of deleted.
func TestForegroundSharedDependent(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/mother")
		w.create("lead dev/father")
		w.create("lead dev/child", blocking("lead dev/mother"), blocking("lead dev/father"))
		w.delete("lead dev/mother", foreground)
		w.shows(`
			lead dev/child <- father!
			lead dev/father`)
	})
}

// One that stops blocking its owner lets it go.
func TestForegroundUnblocked(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/parent")
		w.create("lead dev/child", blocking("lead dev/parent"), finalizer("test.example.com/f"))
		w.delete("lead dev/parent", foreground)
		w.settle()
		w.edit("lead dev/child", func(t object.Tree) { delete(object.Metadata(t), "ownerReferences") })
		w.shows(`lead dev/child [test.example.com/f] going`)
	})
}

func TestForegroundWithoutDependents(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/a")
		w.delete("lead dev/a", foreground)
		w.shows(``)
	})
}

func TestOrphan(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/parent")
		w.create("lead dev/other")
		w.create("lead dev/child", blocking("lead dev/parent"))
		w.create("configmap dev/shared", owner("lead dev/parent"), owner("lead dev/other"))
		w.delete("lead dev/parent", orphaning)
		w.shows(`
			configmap dev/shared <- other
			lead dev/child
			lead dev/other`)
	})
}

// An object whose owner never was, or is not the one it means, goes at once.
func TestDangling(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/real")
		w.create("lead dev/a", missing("lead dev/gone"))
		w.create("lead dev/b", missing("lead dev/real"))
		w.create("lead dev/c", missing("lead dev/gone"), owner("lead dev/real"))
		w.shows(`
			lead dev/c <- real
			lead dev/real`)
		w.edit("lead dev/c", func(t object.Tree) {
			delete(object.Metadata(t), "ownerReferences")
			missing("lead dev/gone")(w, t)
		})
		w.shows(`lead dev/real`)
	})
}

// Two that own each other live as long as nobody deletes one of them.
func TestCircle(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{background, foreground} {
		t.Run(string(policy), func(t *testing.T) {
			in(t, func(w *world) {
				w.create("lead dev/a")
				w.create("lead dev/b", blocking("lead dev/a"))
				w.create("lead dev/c", blocking("lead dev/b"))
				w.edit("lead dev/a", func(t object.Tree) { blocking("lead dev/c")(w, t) })
				w.shows(`
					lead dev/a <- c!
					lead dev/b <- a!
					lead dev/c <- b!`)
				w.delete("lead dev/b", policy)
				w.shows(``)
			})
		})
	}
}

// An owner in a namespace owns nothing outside of it.
func TestOtherNamespace(t *testing.T) {
	in(t, func(w *world) {
		w.create("namespace ops")
		w.create("lead ops/parent")
		w.create("lead dev/child", owner("lead ops/parent"))
		w.shows(`
			lead ops/parent
			namespace ops`)
		w.wantEvent("dev", `does not exist in namespace "dev"`)

		// What is in no namespace is left alone with the mistake.
		w.create("namespace default")
		w.create("hub child", owner("lead ops/parent"))
		w.settle()
		w.delete("lead ops/parent", "")
		w.shows(`
			hub child <- parent
			namespace default
			namespace ops`)
		w.wantEvent("default", `does not exist in namespace ""`)
	})
}

// wantEvent looks for an event about a wrong owner.
func (w *world) wantEvent(namespace, text string) {
	w.t.Helper()
	page, _ := w.backend.List(w.ctx, kv.Range{Prefix: w.kinds["event"].NamespacePrefix(namespace)})
	for _, r := range page.Records {
		if s := string(r.Value); strings.Contains(s, "OwnerRefInvalidNamespace") && strings.Contains(s, strings.Trim(fmt.Sprintf("%q", text), `"`)) {
			return
		}
	}
	w.t.Errorf("no event in namespace %s says %s", namespace, text)
}

// An owner of a kind that nobody serves may exist, so its dependents stay until
// the kind is served.
func TestUnknownOwnerKind(t *testing.T) {
	in(t, func(w *world) {
		wheel := custom("Wheel", true)
		w.kinds["wheel"] = wheel
		w.create("lead dev/a", missing("wheel dev/x"), missing("lead dev/gone"))
		w.create("lead dev/b")
		w.create("lead dev/c", owner("lead dev/b"))
		w.delete("lead dev/b", "")
		w.shows(`lead dev/a <- x <- gone`)

		w.serve(wheel)
		w.shows(``)
	})
}

// serve makes a kind served, as a CustomResourceDefinition does.
func (w *world) serve(d *resource.Definition) {
	w.t.Helper()
	set := w.catalog.Set().With(nil, []*resource.Definition{d, custom("Unused", false)})
	w.catalog.Swap(set)
	w.found.queue.add(w.found.unknown.turn()...)
}

// What was under way when a server ended is finished by the next one.
func TestRestart(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/waits")
		w.create("lead dev/blocks", blocking("lead dev/waits"), finalizer("test.example.com/f"))
		w.create("lead dev/leaves")
		w.create("lead dev/orphan", owner("lead dev/leaves"))
		w.create("lead dev/gone")
		w.create("lead dev/dangling", owner("lead dev/gone"))
		w.create("lead dev/held", owner("lead dev/waits"), finalizer("test.example.com/f"))
		w.delete("lead dev/waits", foreground)
		w.settle()
		w.stop()
		w.delete("lead dev/leaves", orphaning)
		w.delete("lead dev/gone", "")
		w.shows(`
			lead dev/blocks [test.example.com/f] going <- waits!
			lead dev/dangling <- gone
			lead dev/held [test.example.com/f] going <- waits
			lead dev/leaves [orphan] going
			lead dev/orphan <- leaves
			lead dev/waits [foregroundDeletion] going`)
		w.start()
		w.shows(`
			lead dev/blocks [test.example.com/f] going <- waits!
			lead dev/held [test.example.com/f] going <- waits
			lead dev/orphan
			lead dev/waits [foregroundDeletion] going`)
		w.release("lead dev/blocks")
		w.release("lead dev/held")
		w.shows(`lead dev/orphan`)
	})
}

// Two servers that do the same work do it once.
func TestTwoServers(t *testing.T) {
	in(t, func(w *world) {
		w.start()
		w.create("hub parent")
		for i := range 40 {
			w.create(fmt.Sprint("lead dev/", i), blocking("hub parent"))
			w.create(fmt.Sprint("configmap dev/", i), owner(fmt.Sprint("lead dev/", i)))
		}
		w.delete("hub parent", foreground)
		w.settle()
		w.sleep(longestRetry)
		w.shows(``)
		w.create("lead dev/a", finalizer("test.example.com/f"))
		w.delete("namespace dev", "")
		w.settle()
		w.release("lead dev/a")
		w.sleep(longestRetry)
		w.shows(``)
		if w.get("namespace dev") != nil {
			t.Error("the namespace is still there")
		}
	})
}

// Nothing is remembered of objects that nobody owns with, nor of those that are
// gone.
func TestRemembersOwnersOnly(t *testing.T) {
	in(t, func(w *world) {
		w.create("lead dev/a")
		w.create("lead dev/b")
		w.settle()
		l := w.found
		if len(l.owners.nodes)+len(l.owners.families) > 0 {
			t.Error("objects without owners are remembered")
		}
		w.create("lead dev/child", owner("lead dev/a"), owner("lead dev/b"))
		w.settle()
		if len(l.owners.nodes) != 1 || len(l.owners.families) != 2 {
			t.Errorf("%d dependents of %d owners are remembered, want 1 of 2", len(l.owners.nodes), len(l.owners.families))
		}
		w.delete("lead dev/a", orphaning)
		w.settle()
		w.delete("lead dev/b", foreground)
		w.shows(``)
		if len(l.owners.nodes)+len(l.owners.families)+len(l.queue.entries) > 0 {
			t.Errorf("%v %v %v are remembered", l.owners.nodes, l.owners.families, l.queue.entries)
		}
	})
}
