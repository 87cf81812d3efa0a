package garbage

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/controller/namespace"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

const (
	background = metav1.DeletePropagationBackground
	foreground = metav1.DeletePropagationForeground
	orphaning  = metav1.DeletePropagationOrphan
)

// A world has the garbage collector and the namespace controller.
type world struct {
	*controllertest.World
	found *Controller // the last started one
	queue *controller.Queue
}

func in(t *testing.T, test func(w *world)) {
	w := &world{}
	controllertest.In(t, []controller.Descriptor{
		{Name: namespace.Name, New: namespace.New},
		{Name: Name, New: func(o *controller.Objects, q *controller.Queue) controller.Controller {
			w.found, w.queue = New(o, q).(*Controller), q
			return w.found
		}},
	}, func(world *controllertest.World) {
		w.World = world
		test(w)
	})
}

// Delete deletes an object after the garbage collector has seen its dependents.
func (w *world) Delete(what string, policy metav1.DeletionPropagation) {
	w.T.Helper()
	w.Wait()
	w.World.Delete(what, policy)
}

// With background deletion the owner is deleted first, and its dependents of any kind follow.
func TestBackground(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/parent")
		w.Create("configmap dev/child", controllertest.Owner("lead dev/parent"))
		w.Create("lead dev/grandchild", controllertest.Owner("configmap dev/child"))
		w.Create("lead dev/stranger")
		w.Shows(`
			configmap dev/child <- parent
			lead dev/grandchild <- child
			lead dev/parent
			lead dev/stranger`)
		w.Delete("lead dev/parent", "")
		w.Shows(`lead dev/stranger`)
	})
}

// A cluster-scoped owner can own objects anywhere.
func TestClusterScopedOwner(t *testing.T) {
	in(t, func(w *world) {
		w.Create("namespace ops")
		w.Create("hub h")
		w.Create("hub below", controllertest.Owner("hub h"))
		w.Create("lead dev/a", controllertest.Owner("hub h"))
		w.Create("lead ops/a", controllertest.Owner("hub h"))
		w.Delete("hub h", background)
		w.Shows(`namespace ops`)
	})
}

// With background deletion a dependent with a finalizer does not hold its owner.
func TestBackgroundDoesNotWait(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/parent")
		w.Create("lead dev/child", controllertest.Blocking("lead dev/parent"), controllertest.Finalizer("test.example.com/f"))
		w.Delete("lead dev/parent", background)
		w.Shows(`lead dev/child [test.example.com/f] going <- parent!`)
		w.Release("lead dev/child")
		w.Shows(``)
	})
}

// A dependent is deleted with the last of its owners. References to owners deleted earlier are
// removed.
func TestTwoOwners(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/mother")
		w.Create("lead dev/father")
		w.Create("lead dev/child", controllertest.Owner("lead dev/mother"), controllertest.Owner("lead dev/father"))
		w.Delete("lead dev/mother", "")
		w.Shows(`
			lead dev/child <- father
			lead dev/father`)
		w.Delete("lead dev/father", "")
		w.Shows(``)
	})
}

// With foreground deletion the owner stays until blocking dependents are gone; others are deleted
// without waiting.
func TestForeground(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/parent")
		w.Create("lead dev/blocks", controllertest.Blocking("lead dev/parent"), controllertest.Finalizer("test.example.com/f"))
		w.Create("lead dev/does-not", controllertest.Owner("lead dev/parent"), controllertest.Finalizer("test.example.com/f"))
		w.Delete("lead dev/parent", foreground)
		w.Shows(`
			lead dev/blocks [test.example.com/f] going <- parent!
			lead dev/does-not [test.example.com/f] going <- parent
			lead dev/parent [foregroundDeletion] going`)
		w.Release("lead dev/blocks")
		w.Shows(`lead dev/does-not [test.example.com/f] going <- parent`)
	})
}

// Foreground deletion applies to dependents of dependents.
func TestForegroundGoesDown(t *testing.T) {
	in(t, func(w *world) {
		w.Create("hub top")
		w.Create("lead dev/middle", controllertest.Blocking("hub top"))
		w.Create("configmap dev/low", controllertest.Blocking("lead dev/middle"), controllertest.Finalizer("test.example.com/f"))
		w.Delete("hub top", foreground)
		w.Shows(`
			configmap dev/low [test.example.com/f] going <- middle!
			hub top [foregroundDeletion] going
			lead dev/middle [foregroundDeletion] going <- top!`)
		w.Release("configmap dev/low")
		w.Shows(``)
	})
}

// Foreground deletion removes the reference in a dependent that has another owner.
func TestForegroundSharedDependent(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/mother")
		w.Create("lead dev/father")
		w.Create("lead dev/child", controllertest.Blocking("lead dev/mother"), controllertest.Blocking("lead dev/father"))
		w.Delete("lead dev/mother", foreground)
		w.Shows(`
			lead dev/child <- father!
			lead dev/father`)
	})
}

// An owner is deleted once its dependents no longer block it.
func TestForegroundUnblocked(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/parent")
		w.Create("lead dev/child", controllertest.Blocking("lead dev/parent"), controllertest.Finalizer("test.example.com/f"))
		w.Delete("lead dev/parent", foreground)
		w.Wait()
		w.Edit("lead dev/child", func(t object.Tree) { delete(object.Metadata(t), "ownerReferences") })
		w.Shows(`lead dev/child [test.example.com/f] going`)
	})
}

func TestForegroundWithoutDependents(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/a")
		w.Delete("lead dev/a", foreground)
		w.Shows(``)
	})
}

func TestOrphan(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/parent")
		w.Create("lead dev/other")
		w.Create("lead dev/child", controllertest.Blocking("lead dev/parent"))
		w.Create("configmap dev/shared", controllertest.Owner("lead dev/parent"), controllertest.Owner("lead dev/other"))
		w.Delete("lead dev/parent", orphaning)
		w.Shows(`
			configmap dev/shared <- other
			lead dev/child
			lead dev/other`)
	})
}

// An object is deleted at once if its owner never existed, or has another UID.
func TestDangling(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/real")
		w.Create("lead dev/a", controllertest.Missing("lead dev/gone"))
		w.Create("lead dev/b", controllertest.Missing("lead dev/real"))
		w.Create("lead dev/c", controllertest.Missing("lead dev/gone"), controllertest.Owner("lead dev/real"))
		w.Shows(`
			lead dev/c <- real
			lead dev/real`)
		w.Edit("lead dev/c", func(t object.Tree) {
			delete(object.Metadata(t), "ownerReferences")
			controllertest.Missing("lead dev/gone")(w.World, t)
		})
		w.Shows(`lead dev/real`)
	})
}

// Two objects that own each other live until one of them is deleted.
func TestCircle(t *testing.T) {
	for _, policy := range []metav1.DeletionPropagation{background, foreground} {
		t.Run(string(policy), func(t *testing.T) {
			in(t, func(w *world) {
				w.Create("lead dev/a")
				w.Create("lead dev/b", controllertest.Blocking("lead dev/a"))
				w.Create("lead dev/c", controllertest.Blocking("lead dev/b"))
				w.Edit("lead dev/a", func(t object.Tree) { controllertest.Blocking("lead dev/c")(w.World, t) })
				w.Shows(`
					lead dev/a <- c!
					lead dev/b <- a!
					lead dev/c <- b!`)
				w.Delete("lead dev/b", policy)
				w.Shows(``)
			})
		})
	}
}

// A namespaced owner owns nothing outside of its namespace.
func TestOtherNamespace(t *testing.T) {
	in(t, func(w *world) {
		w.Create("namespace ops")
		w.Create("lead ops/parent")
		w.Create("lead dev/child", controllertest.Owner("lead ops/parent"))
		w.Shows(`
			lead ops/parent
			namespace ops`)
		w.wantEvent("dev", `does not exist in namespace "dev"`)

		// A cluster-scoped object stays; the invalid owner is reported.
		w.Create("namespace default")
		w.Create("hub child", controllertest.Owner("lead ops/parent"))
		w.Wait()
		w.Delete("lead ops/parent", "")
		w.Shows(`
			hub child <- parent
			namespace default
			namespace ops`)
		w.wantEvent("default", `does not exist in namespace ""`)
	})
}

// wantEvent checks for an Event about an invalid owner.
func (w *world) wantEvent(namespace, text string) {
	w.T.Helper()
	page, _ := w.Backend.List(w.Ctx, kv.Range{Prefix: w.Kinds["event"].NamespacePrefix(namespace)})
	for _, r := range page.Records {
		if s := string(r.Value); strings.Contains(s, "OwnerRefInvalidNamespace") && strings.Contains(s, strings.Trim(fmt.Sprintf("%q", text), `"`)) {
			return
		}
	}
	w.T.Errorf("no event in namespace %s says %s", namespace, text)
}

// An owner of an unserved kind may exist, so its dependents stay until the kind is served.
func TestUnknownOwnerKind(t *testing.T) {
	in(t, func(w *world) {
		wheels := controllertest.Custom("Wheel", true)
		wheels.Versions[0].Name = "v2" // as Define does later
		w.Kinds["wheel"] = wheels
		w.Create("lead dev/a", controllertest.Missing("wheel dev/x"), controllertest.Missing("lead dev/gone"))
		w.Create("lead dev/b")
		w.Create("lead dev/c", controllertest.Owner("lead dev/b"))
		w.Delete("lead dev/b", "")
		w.Shows(`lead dev/a <- x <- gone`)

		w.Define("Wheel", true)
		w.Shows(`customresourcedefinition wheels.test.example.com`)
	})
}

// An object that waits for the kind of its owner is forgotten when it is deleted.
func TestDependentOfUnknownKindIsForgotten(t *testing.T) {
	in(t, func(w *world) {
		for range 3 {
			w.Create("configmap dev/a", func(_ *controllertest.World, t object.Tree) {
				object.Metadata(t)["ownerReferences"] = []any{object.Tree{"apiVersion": "apps.example.com/v1", "kind": "Deployment", "name": "d", "uid": "d"}}
			})
			w.Wait()
			if w.queue.Idle() {
				t.Error("an object whose owner may come to be known is not waited for")
			}
			w.Delete("configmap dev/a", "")
			w.Wait()
		}
		if !w.queue.Idle() {
			t.Error("tasks of an object that is gone are remembered")
		}
	})
}

// Another server finishes the work of a stopped one.
func TestRestart(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/waits")
		w.Create("lead dev/blocks", controllertest.Blocking("lead dev/waits"), controllertest.Finalizer("test.example.com/f"))
		w.Create("lead dev/leaves")
		w.Create("lead dev/orphan", controllertest.Owner("lead dev/leaves"))
		w.Create("lead dev/gone")
		w.Create("lead dev/dangling", controllertest.Owner("lead dev/gone"))
		w.Create("lead dev/held", controllertest.Owner("lead dev/waits"), controllertest.Finalizer("test.example.com/f"))
		w.Delete("lead dev/waits", foreground)
		w.Wait()
		w.Stop()
		w.Delete("lead dev/leaves", orphaning)
		w.Delete("lead dev/gone", "")
		w.Shows(`
			lead dev/blocks [test.example.com/f] going <- waits!
			lead dev/dangling <- gone
			lead dev/held [test.example.com/f] going <- waits
			lead dev/leaves [orphan] going
			lead dev/orphan <- leaves
			lead dev/waits [foregroundDeletion] going`)
		w.Start()
		w.Shows(`
			lead dev/blocks [test.example.com/f] going <- waits!
			lead dev/held [test.example.com/f] going <- waits
			lead dev/orphan
			lead dev/waits [foregroundDeletion] going`)
		w.Release("lead dev/blocks")
		w.Release("lead dev/held")
		w.Shows(`lead dev/orphan`)
	})
}

// Two servers with the same work do it once.
func TestTwoServers(t *testing.T) {
	in(t, func(w *world) {
		w.Start()
		w.Create("hub parent")
		for i := range 40 {
			w.Create(fmt.Sprint("lead dev/", i), controllertest.Blocking("hub parent"))
			w.Create(fmt.Sprint("configmap dev/", i), controllertest.Owner(fmt.Sprint("lead dev/", i)))
		}
		w.Delete("hub parent", foreground)
		w.Wait()
		w.Sleep(controller.LongestRetry)
		w.Shows(``)
		w.Create("lead dev/a", controllertest.Finalizer("test.example.com/f"))
		w.Delete("namespace dev", "")
		w.Wait()
		w.Release("lead dev/a")
		w.Sleep(controller.LongestRetry)
		w.Shows(``)
		if w.Get("namespace dev") != nil {
			t.Error("the namespace is still there")
		}
	})
}

// The controller remembers no objects without owner references, and no deleted ones.
func TestRemembersOwnersOnly(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/a")
		w.Create("lead dev/b")
		w.Wait()
		l := w.found
		if len(l.owners.nodes)+len(l.owners.families) > 0 {
			t.Error("objects without owners are remembered")
		}
		w.Create("lead dev/child", controllertest.Owner("lead dev/a"), controllertest.Owner("lead dev/b"))
		w.Wait()
		if len(l.owners.nodes) != 1 || len(l.owners.families) != 2 {
			t.Errorf("%d dependents of %d owners are remembered, want 1 of 2", len(l.owners.nodes), len(l.owners.families))
		}
		w.Delete("lead dev/a", orphaning)
		w.Wait()
		w.Delete("lead dev/b", foreground)
		w.Shows(``)
		if len(l.owners.nodes)+len(l.owners.families) > 0 || !w.queue.Idle() {
			t.Errorf("%v %v are remembered, or tasks", l.owners.nodes, l.owners.families)
		}
	})
}
