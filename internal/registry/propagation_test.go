package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/memkv"
)

// Each case gives the finalizers after a deletion, by the options of the client: none, Background,
// Foreground, Orphan, and orphanDependents false and true. Without a finalizer the object is gone.
func TestPropagation(t *testing.T) {
	const f, o, x = metav1.FinalizerDeleteDependents, metav1.FinalizerOrphanDependents, "example.com/x"
	const gone = "gone"
	for _, c := range []struct {
		kind       string
		finalizers string // before
		want       [6]string
	}{
		{"configmaps", "", [6]string{gone, gone, f, o, gone, o}},
		{"configmaps", x, [6]string{x, x, x + " " + f, x + " " + o, x, x + " " + o}},
		{"configmaps", f, [6]string{f, gone, f, o, gone, o}},
		{"configmaps", o, [6]string{o, gone, f, o, gone, o}},
		{"configmaps", o + " " + x, [6]string{o + " " + x, x, x + " " + f, o + " " + x, x, o + " " + x}},
		// Some kinds orphan their dependents by default.
		{"jobs", "", [6]string{o, gone, f, o, gone, o}},
		{"jobs", f, [6]string{f, gone, f, o, gone, o}},
		{"jobs", x, [6]string{x + " " + o, x, x + " " + f, x + " " + o, x, x + " " + o}},
		// Events own nothing.
		{"events", "", [6]string{gone, gone, gone, gone, gone, gone}},
		{"events", f + " " + x, [6]string{x, x, x, x, x, x}},
		// Finalizers of a namespace are independent of the request, and orphanDependents has another
		// meaning.
		{"namespaces", "", [6]string{"", "", f, o, f, o}},
		{"namespaces", o, [6]string{o, "", f, o, f, o}},
	} {
		for i, ask := range asks() {
			name := fmt.Sprintf("%s [%s] %s", c.kind, c.finalizers, describe(ask))
			t.Run(name, func(t *testing.T) {
				w := newStore(t)
				target := w.create(c.kind, strings.Fields(c.finalizers))
				if got := w.delete(target, ask); got != c.want[i] {
					t.Errorf("finalizers %q, want %q", got, c.want[i])
				}
			})
		}
	}
}

// A delete of an object that is being deleted can change its propagation policy, or let it go. Without
// options it changes nothing.
func TestPropagationAgain(t *testing.T) {
	w := newStore(t)
	target := w.create("configmaps", nil)
	policies := asks()
	for _, step := range []struct {
		ask  *metav1.DeleteOptions
		want string
	}{
		{policies[2], "foregroundDeletion"},
		{policies[0], "foregroundDeletion"},
		{policies[3], "orphan"},
		{policies[0], "orphan"},
		{policies[1], "gone"},
	} {
		if got := w.delete(target, step.ask); got != step.want {
			t.Fatalf("%s gives %q, want %q", describe(step.ask), got, step.want)
		}
	}

	// The deletion mark is set once, and a repetition changes nothing.
	w.create("configmaps", nil)
	first, _ := w.registry.Delete(w.ctx, target, policies[2], registry.WriteOptions{})
	again, err := w.registry.Delete(w.ctx, target, policies[2], registry.WriteOptions{})
	if err != nil || again.Object.Revision != first.Object.Revision {
		t.Errorf("repeated: revision %d and then %d, %v", first.Object.Revision, again.Object.Revision, err)
	}
	// A namespace that is being deleted does not change any more.
	namespace := w.create("namespaces", nil)
	w.delete(namespace, policies[3])
	if got := w.delete(namespace, policies[2]); got != "orphan" {
		t.Errorf("a namespace that is deleted again has %q", got)
	}
}

// asks returns all options of a client.
func asks() []*metav1.DeleteOptions {
	var all []*metav1.DeleteOptions
	all = append(all, &metav1.DeleteOptions{})
	for _, p := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		all = append(all, &metav1.DeleteOptions{PropagationPolicy: &p})
	}
	for _, b := range []bool{false, true} {
		//lint:ignore SA1019 old clients send it
		all = append(all, &metav1.DeleteOptions{OrphanDependents: &b})
	}
	return all
}

func describe(o *metav1.DeleteOptions) string {
	//lint:ignore SA1019 old clients send it
	leave := o.OrphanDependents
	switch {
	case o.PropagationPolicy != nil:
		return string(*o.PropagationPolicy)
	case leave != nil:
		return fmt.Sprintf("orphanDependents=%t", *leave)
	default:
		return "nothing"
	}
}

// store is a registry over an empty store of the built-in kinds.
type store struct {
	t        *testing.T
	ctx      context.Context
	registry *registry.Registry
	kinds    *resource.Set
}

func newStore(t *testing.T) *store {
	backend := memkv.New(memkv.Options{})
	return &store{t, t.Context(), registry.New(backend, caching(t, backend), registry.Options{}), resource.NewSet(append(builtin.Definitions(), jobs()))}
}

// jobs are like configmaps, but orphan their dependents by default.
func jobs() *resource.Definition {
	return resource.NewSet(builtin.Definitions()).Lookup("", "configmaps").Continue(func(d *resource.Definition) {
		d.Plural, d.StoragePrefix, d.OrphansDependents = "jobs", "/registry/jobs/", true
	})
}

func (w *store) create(plural string, finalizers []string) registry.Target {
	w.t.Helper()
	d := w.kinds.Lookup("", plural)
	namespace := ""
	if d.Namespaced {
		namespace = "default"
	}
	target := registry.StorageTarget(d, namespace, "a")
	t := object.Tree{"apiVersion": "v1", "kind": d.Kind, "metadata": object.Tree{"name": "a"}}
	object.SetFinalizers(t, finalizers)
	if _, err := w.registry.Create(w.ctx, target, registry.Given(t), registry.WriteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	return target
}

// delete deletes an object and returns its remaining finalizers.
func (w *store) delete(target registry.Target, options *metav1.DeleteOptions) string {
	w.t.Helper()
	deletion, err := w.registry.Delete(w.ctx, target, options, registry.WriteOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.registry.Get(w.ctx, target, "")
	if deletion.Gone != (err != nil) {
		w.t.Fatal(errors.New("it is not what the answer says"), deletion.Gone, err)
	}
	if deletion.Gone {
		return "gone"
	}
	if !object.Deleting(deletion.Object.Tree) {
		w.t.Error("it is not being deleted")
	}
	return strings.Join(object.Finalizers(deletion.Object.Tree), " ")
}
