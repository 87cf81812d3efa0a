package registry

import (
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// settle drops from what is written what nobody sees of it once it is stored. Who manages
// fields, and admission that may change the object, see nothing of that before, either, but lists
// and maps that are empty and written; the kind does. What a Creater is asked is not stored.
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

// reread gives the kind the object as it was read, with the metadata that it has now.
func (w *write) reread() {
	if w.read != nil {
		w.read["metadata"] = w.object["metadata"]
		w.object = w.read
	}
}

// settleRead drops what settle has dropped from what the kind has made of the object.
func (w *write) settleRead() {
	if w.read != nil {
		w.object, _ = w.target.Version.Schema.(resource.SettlingSchema).Settle(w.object)
	}
}

// graft gives the object as it was read what admission has added to the settled one, which has
// the same lists and maps but for those that are empty.
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
