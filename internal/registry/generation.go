package registry

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// count increments metadata.generation if the write changes the spec of the object.
func (w *write) count() {
	d, v := w.target.Definition, w.target.Version
	if !d.HasGeneration || w.current == nil {
		return
	}
	asks := w.object
	switch s, _ := v.Schema.(resource.DroppingSchema); {
	case w.read == nil:
	case d.CountsEmpty:
		// kube-apiserver stores empty byte fields, so that sending them again is no change.
		asks = s.DropEmptyBytes(asks)
	default:
		asks = s.DropEmpty(asks)
	}
	if asksForOther(v, asks, w.old) {
		object.SetGeneration(w.object, object.Generation(w.old)+1)
	}
}

// asksForOther reports whether the object differs from the old one in anything but its metadata and,
// if that is a subresource, its status.
func asksForOther(v *resource.Version, t, old object.Tree) bool {
	ownStatus := v.Subresource("status") != nil
	skip := func(k string) bool {
		return k == "metadata" || k == "apiVersion" || k == "kind" || ownStatus && k == "status"
	}
	for k, value := range t {
		if was, ok := old[k]; !skip(k) && (!ok || !object.Equal(value, was)) {
			return true
		}
	}
	for k := range old {
		if _, ok := t[k]; !skip(k) && !ok {
			return true
		}
	}
	return false
}
