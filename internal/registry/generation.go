package registry

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// count counts a change of what the object asks for in its metadata.generation.
func (w *write) count() {
	d, v := w.target.Definition, w.target.Version
	if !d.HasGeneration || w.current == nil {
		return
	}
	asks := w.object
	switch s, _ := v.Schema.(resource.SettlingSchema); {
	case w.read == nil:
	case d.CountsEmpty:
		// kube-apiserver stores that bytes are there and empty, so that they are no change
		// when they are sent again.
		asks = s.DropEmptyBytes(asks)
	default:
		asks = s.DropEmpty(asks)
	}
	if asksForOther(v, asks, w.old) {
		object.SetGeneration(w.object, object.Generation(w.old)+1)
	}
}

// asksForOther reports whether the object asks for something else than the old one did: in
// anything but its metadata and, where that has a path of its own, its status.
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
