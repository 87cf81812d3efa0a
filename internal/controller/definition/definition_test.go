package definition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
)

const widgets = "customresourcedefinition widgets.test.example.com"

type world struct{ *controllertest.World }

// in runs a test in a world with the kind Widget.
func in(t *testing.T, test func(w *world)) {
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
		w.Define("Widget", true)
		w.Wait()
		test(&world{w})
	})
}

// get returns the definition of Widgets, or nil.
func (w *world) get() *v1.CustomResourceDefinition {
	w.T.Helper()
	w.Wait()
	t := w.Get(widgets)
	if t == nil {
		return nil
	}
	d := &v1.CustomResourceDefinition{}
	if err := json.Unmarshal(object.AppendJSON(nil, t), d); err != nil {
		w.T.Fatal(err)
	}
	return d
}

// says compares the condition Terminating of the definition, "" if the definition is gone.
func (w *world) says(want string) {
	w.T.Helper()
	got := ""
	if d := w.get(); d != nil {
		for _, c := range d.Status.Conditions {
			if c.Type == v1.Terminating {
				got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
		}
		if got == "" {
			got = "nothing"
		}
	}
	if got != want {
		w.T.Fatalf("the definition says\n%s\nwant\n%s", got, want)
	}
}

func TestDeleteRemovesTheObjectsFirst(t *testing.T) {
	in(t, func(w *world) {
		w.Create("widget dev/one")
		w.Create("widget dev/held", controllertest.Finalizer("example.com/hold"))
		before := w.Target("widget dev/held")

		w.Delete(widgets, "")
		w.says("True InstanceDeletionInProgress: CustomResource deletion is in progress")
		w.Shows(`
			customresourcedefinition widgets.test.example.com [customresourcecleanup.apiextensions.k8s.io] going
			widget dev/held [example.com/hold] going`)
		if d := w.get(); d.DeletionGracePeriodSeconds != nil || d.ManagedFields != nil {
			t.Errorf("metadata = %+v, want no grace period and no managed fields", d.ObjectMeta)
		}
		select {
		case <-w.Catalog.Retired(before.Definition):
			t.Error("the Definition was retired while there are objects: their watchers would not see them go")
		default:
		}

		// New objects cannot be created.
		err := w.TryCreate("widget dev/late")
		if err == nil || !strings.Contains(err.Error(), "create not allowed while custom resource definition is terminating") {
			t.Errorf("create while terminating: %v", err)
		}
		before.Name = "late"
		late := object.Tree{"apiVersion": "test.example.com/v2", "kind": "Widget", "metadata": object.Tree{"name": "late"}}
		if _, err := w.Registry.Create(w.Ctx, before, registry.Given(late), registry.WriteOptions{}); !errors.Is(err, registry.ErrStale) {
			t.Errorf("create with the Definition from before: %v, want ErrStale", err)
		}

		// With the last object the definition is deleted, too.
		w.Release("widget dev/held")
		w.Shows(``)
		if w.Catalog.Set().Lookup("test.example.com", "widgets") != nil {
			t.Error("the kind is still served")
		}
		<-w.Catalog.Retired(before.Definition)

		// A definition of the same name starts empty.
		w.Define("Widget", true)
		w.Shows(`customresourcedefinition widgets.test.example.com`)
	})
}

// A definition without accepted names is deleted at once. The objects of the kind that has the
// names stay.
func TestDeleteOfWhatWasNeverServed(t *testing.T) {
	in(t, func(w *world) {
		w.Create("widget dev/one")
		w.Create("customresourcedefinition others.test.example.com", func(_ *controllertest.World, t object.Tree) {
			t["spec"] = object.CloneTree(w.Get(widgets)["spec"].(object.Tree))
			t["spec"].(object.Tree)["names"] = object.Tree{"plural": "others", "kind": "Widget"}
		}, controllertest.Finalizer("example.com/hold"))
		w.Delete("customresourcedefinition others.test.example.com", "")
		w.Wait()
		if text := fmt.Sprint(w.Get("customresourcedefinition others.test.example.com")["status"]); !strings.Contains(text, "resource was never established") {
			t.Errorf("the status is %s", text)
		}
		w.Release("customresourcedefinition others.test.example.com")
		w.Shows(`
			customresourcedefinition widgets.test.example.com
			widget dev/one`)
	})
}

// A definition with another finalizer reports that its objects are gone, and stays Terminating:
// objects cannot be created.
func TestDeleteSaysWhenObjectsAreGone(t *testing.T) {
	in(t, func(w *world) {
		w.Edit(widgets, func(t object.Tree) { object.SetFinalizers(t, []string{"example.com/hold"}) })
		w.Delete(widgets, "")
		w.says("True InstanceDeletionCompleted: removed all instances")
		if d := w.get(); len(d.Finalizers) != 1 {
			t.Errorf("finalizers are %v", d.Finalizers)
		}
	})
}

// No object that is created during the deletion of its definition remains. Acknowledged writes are
// not lost otherwise.
func TestCreateWhileDeleted(t *testing.T) {
	in(t, func(w *world) {
		for round := range 4 {
			ctx, cancel := context.WithCancel(w.Ctx)
			var creators sync.WaitGroup
			for c := range 4 {
				creators.Go(func() {
					for i := 0; ctx.Err() == nil && w.Catalog.Set().Lookup("test.example.com", "widgets") != nil; i++ {
						_ = w.TryCreate(fmt.Sprintf("widget dev/w%d-%d-%d", round, c, i))
					}
				})
			}
			for i := range 100 {
				w.Create(fmt.Sprintf("widget dev/early%d", i))
			}
			w.Delete(widgets, "")
			creators.Wait()
			cancel()
			w.Shows(``)
			w.Define("Widget", true)
		}
	})
}

func TestDeletionIsTriedAgain(t *testing.T) {
	in(t, func(w *world) {
		w.Create("widget dev/one")
		w.Create("widget dev/two")
		var asked atomic.Int32 // objects are deleted concurrently
		w.Admit = func(a *registry.Admission) error {
			if a.Operation == registry.Delete && a.Target.Definition.Kind == "Widget" && asked.Add(1) <= 6 {
				return errors.New("no luck")
			}
			return nil
		}
		w.Delete(widgets, "")
		w.says("True InstanceDeletionFailed: could not issue all deletes: no luck")
		w.Sleep(controller.LongestRetry)
		w.Shows(``)
	})
}

// An object with a finalizer is reported in the status, and the controller continues to wait for
// it.
func TestHeldObject(t *testing.T) {
	in(t, func(w *world) {
		w.Create("widget dev/one", controllertest.Finalizer("example.com/hold"))
		w.Delete(widgets, "")
		const waits = "True InstanceDeletionInProgress: CustomResource deletion is in progress"
		for range 3 {
			w.Sleep(reportAfter - time.Nanosecond)
			w.says(waits)
			w.Sleep(time.Nanosecond)
			w.says("True InstanceDeletionCheck: could not confirm zero CustomResources remaining: context deadline exceeded")
			w.Sleep(controller.ShortestRetry)
			w.says(waits)
		}
		w.Release("widget dev/one")
		w.says("")
	})
}

// Another server finishes the work of a stopped one.
func TestRestart(t *testing.T) {
	in(t, func(w *world) {
		w.Create("widget dev/one")
		w.Create("widget dev/held", controllertest.Finalizer("example.com/hold"))
		w.Stop()
		w.Delete(widgets, "")
		w.says("True InstanceDeletionPending: CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon")
		w.Start()
		w.Shows(`
			customresourcedefinition widgets.test.example.com [customresourcecleanup.apiextensions.k8s.io] going
			widget dev/held [example.com/hold] going`)
		w.Stop()
		w.Release("widget dev/held")
		w.Start()
		w.Shows(``)
	})
}

// A definition with the name of a built-in kind does not delete the objects of that kind.
func TestOverlappingBuiltIn(t *testing.T) {
	in(t, func(w *world) {
		w.Create("lead dev/a")
		w.Define("Lead", true)
		w.Kinds["lead"] = controllertest.Custom("Lead", true)
		w.Edit("customresourcedefinition leads.test.example.com", func(t object.Tree) { object.SetFinalizers(t, []string{"example.com/hold"}) })
		w.Delete("customresourcedefinition leads.test.example.com", "")
		w.Wait()
		if text := fmt.Sprint(w.Get("customresourcedefinition leads.test.example.com")["status"]); !strings.Contains(text, "instances overlap with built-in resources in storage") {
			t.Errorf("the status is %s", text)
		}
		if w.Get("lead dev/a") == nil {
			t.Error("the object of the kind that is built in was deleted")
		}
	})
}

// The controller only remembers definitions that are being deleted.
func TestRemembersWhatIsDeletedOnly(t *testing.T) {
	var c *Controller
	var q *controller.Queue
	controllertest.In(t, []controller.Descriptor{{Name: Name, New: func(o *controller.Objects, queue *controller.Queue) controller.Controller {
		c, q = New(o, queue).(*Controller), queue
		return c
	}}}, func(w *controllertest.World) {
		w.Define("Widget", true)
		w.Create("widget dev/one", controllertest.Finalizer("example.com/hold"))
		w.Wait()
		if c.leftovers.Any() || !q.Idle() {
			t.Error("a definition is remembered that stays")
		}
		w.Delete(widgets, "")
		w.Wait()
		if !c.leftovers.Any() {
			t.Error("the controller forgot a definition with a remaining object")
		}
		w.Release("widget dev/one")
		w.Shows(``)
		if c.leftovers.Any() || !q.Idle() {
			t.Error("a definition is remembered that is gone")
		}
		if page, err := w.Backend.List(w.Ctx, kv.Range{Prefix: resource.Root + "test.example.com/"}); err != nil || len(page.Records) > 0 {
			t.Errorf("%d objects are left, %v", len(page.Records), err)
		}
	})
}
