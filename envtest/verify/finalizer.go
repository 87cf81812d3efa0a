package verify

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/anykind/anykind/envtest"
)

// touch notes an object that the user applied.
func (r *run) touch(id identity) {
	r.touched = append(slices.DeleteFunc(r.touched, func(o identity) bool { return o == id }), id)
}

// noteFinalizers notes the finalizers that the program sets, and those that the user has removed and the program has
// not set again.
func (r *run) noteFinalizers(c envtest.Change) {
	if c.After == nil {
		id := identityOf(c.Before)
		delete(r.set, id)
		r.loose = r.loose || r.stripped[id]
		delete(r.stripped, id)
		return
	}
	id, now := identityOf(c.After), c.After.GetFinalizers()
	if c.User == r.world.user().Name {
		var before []string
		if c.Before != nil {
			before = c.Before.GetFinalizers()
		}
		r.set[id] = slices.DeleteFunc(r.set[id], func(f string) bool { return slices.Contains(before, f) && !slices.Contains(now, f) })
		for _, f := range now {
			if !slices.Contains(before, f) && !slices.Contains(r.set[id], f) {
				r.set[id] = append(r.set[id], f)
			}
		}
	}
	r.loose = r.loose || r.stripped[id] && c.After.GetDeletionTimestamp() != nil
	if !slices.ContainsFunc(r.set[id], func(f string) bool { return !slices.Contains(now, f) }) {
		delete(r.stripped, id)
	}
}

// strippable returns the last applied object with a finalizer that the program has set, or nil.
func (r *run) strippable() *object {
	for _, id := range slices.Backward(r.touched) {
		u := r.state.objects[id]
		if u != nil && slices.ContainsFunc(u.GetFinalizers(), func(f string) bool { return slices.Contains(r.set[id], f) }) {
			return u
		}
	}
	return nil
}

// strip removes the finalizers of the program from such an object, as the user. An object that is being deleted is
// gone then, and the program cannot always clean up. It reports whether it removed any.
func (r *run) strip() bool {
	u := r.strippable()
	if u == nil {
		return false
	}
	id := identityOf(u)
	var kept, removed []string
	for _, f := range u.GetFinalizers() {
		if slices.Contains(r.set[id], f) {
			removed = append(removed, f)
		} else {
			kept = append(kept, f)
		}
	}
	r.tell("fault", fmt.Sprintf("the user removes the finalizers %q of %s", removed, id))
	r.stripped[id] = true
	r.loose = r.loose || u.GetDeletionTimestamp() != nil
	o := &object{}
	o.SetGroupVersionKind(u.GroupVersionKind())
	o.SetNamespace(id.namespace)
	o.SetName(id.name)
	patch := client.RawPatch(types.MergePatchType, []byte(compact(map[string]any{"metadata": map[string]any{"finalizers": kept}})))
	if err := r.admin.Patch(context.Background(), o, patch); client.IgnoreNotFound(err) != nil {
		r.fail(Scene, "removing finalizers of %s: %v", id, err)
	}
	return true
}
