package registry

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// settle drops parts of the new object that are never stored. Managed fields and mutating admission do
// not see them either, except empty lists and maps with omitted values; the hooks of the kind see all.
// The object of a Creater is not stored and stays unchanged.
func (w *write) settle() {
	w.read = nil
	if w.creater != nil {
		return
	}
	_, v := w.target.Shown()
	s, ok := v.Schema.(resource.SettlingSchema)
	if !ok {
		return
	}
	settled, dropped := s.Settle(w.shown)
	if dropped && w.projection() == nil {
		w.read, settled = w.shown, s.DropUnwritten(w.shown)
	}
	w.shown = settled
}

// reread passes the object as decoded, with its present metadata, to the hooks of the kind.
func (w *write) reread() {
	if w.read != nil {
		w.read["metadata"] = w.object["metadata"]
		w.object = w.read
	}
}

// settleRead settles the object after the hooks of the kind.
func (w *write) settleRead() {
	if w.read != nil {
		w.object, _ = w.target.Version.Schema.(resource.SettlingSchema).Settle(w.object)
	}
}

// graft copies the changes of admission from the settled object to the object as decoded. Their lists
// and maps differ only in empty ones.
func graft(read, settled any) any {
	switch settled := settled.(type) {
	case object.Tree:
		out, ok := read.(object.Tree)
		if !ok {
			return object.CloneTree(settled)
		}
		for name, v := range settled {
			out[name] = graft(out[name], v)
		}
		return out
	case []any:
		list, ok := read.([]any)
		if !ok || len(list) > len(settled) {
			return object.Clone(settled)
		}
		out := make([]any, len(settled))
		for i, v := range settled {
			if i < len(list) {
				out[i] = graft(list[i], v)
			} else {
				out[i] = object.Clone(v)
			}
		}
		return out
	}
	return settled
}
