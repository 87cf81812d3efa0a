package rest

import (
	"net/http"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Differences answers with the objects that differ from those of the state that the store began with, as a
// ChangeList. Each has its preferred version.
func (h *Handler) Differences(w http.ResponseWriter, r *http.Request) {
	if !request.Allows(w, r, http.MethodGet) {
		return
	}
	ctx := r.Context()
	revision, err := h.registry.Revision(ctx)
	if err != nil {
		request.Fail(w, r, err)
		return
	}
	out := changesWriter{handler: h, to: w}
	out.begin(revision, 0)
	fail := func(err error) {
		if out.sent {
			panic(http.ErrAbortHandler) // The client must not mistake the part that it has for the whole.
		}
		request.Fail(w, r, err)
	}
	w.Header().Set("Content-Type", codec.Format{}.ContentType())
	for d, err := range h.registry.Differences(ctx, h.catalog.Set()) {
		if err == nil {
			served := d.Definition.FirstServed()
			if served == nil {
				continue
			}
			out.definition, out.version = d.Definition, served
			err = out.add(ctx, d.PastChange)
		}
		if err != nil {
			fail(err)
			return
		}
	}
	if err := out.end(); err != nil {
		fail(status.Internal(err))
	}
}
