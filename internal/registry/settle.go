package registry

import (
	"github.com/anykind/anykind/internal/resource"
)

// settle drops from what is written what nobody sees of it once it is stored. Who manages
// fields, and admission, see nothing of that before, either; the kind does. What a Creater is
// asked is not stored.
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
		w.read = w.shown
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
