package registry

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// dropUnstored drops parts of the new object that are never stored. Managed fields and mutating admission do
// not see them either, except empty lists and maps with omitted values; the hooks of the kind see all.
// The object of a Creater is not stored and stays unchanged.
func (w *write) dropUnstored() {
	w.read = nil
	if w.creater != nil {
		return
	}
	_, v := w.target.Shown()
	s, ok := v.Schema.(resource.DroppingSchema)
	if !ok {
		return
	}
	stored, dropped := s.DropUnstored(w.shown)
	if dropped && w.projection() == nil {
		w.read, stored = w.shown, s.DropUnwritten(w.shown)
	}
	w.shown = stored
}

// reread passes the object as decoded, with its present metadata, to the hooks of the kind.
func (w *write) reread() {
	if w.read != nil {
		w.read["metadata"] = w.object["metadata"]
		w.object = w.read
	}
}

// dropRead drops the unstored parts of the object after the hooks of the kind.
func (w *write) dropRead() {
	if w.read != nil {
		w.object, _ = w.target.Version.Schema.(resource.DroppingSchema).DropUnstored(w.object)
	}
}

// graft copies the changes of admission from the stored object to the object as decoded. Their lists
// and maps differ only in empty ones.
func graft(read, stored any) any {
	switch stored := stored.(type) {
	case object.Tree:
		out, ok := read.(object.Tree)
		if !ok {
			return object.CloneTree(stored)
		}
		for name, v := range stored {
			out[name] = graft(out[name], v)
		}
		return out
	case []any:
		list, ok := read.([]any)
		if !ok || len(list) > len(stored) {
			return object.Clone(stored)
		}
		out := make([]any, len(stored))
		for i, v := range stored {
			if i < len(list) {
				out[i] = graft(list[i], v)
			} else {
				out[i] = object.Clone(v)
			}
		}
		return out
	}
	return stored
}
