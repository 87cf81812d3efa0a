package rest

import (
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// answerCreate answers a create that stores nothing.
func (h *Handler) answerCreate(w *writeRequest, change registry.Change) error {
	t, err := h.registry.Answer(w.Context(), w.target, change, w.options)
	if err != nil {
		return err
	}
	if t == nil {
		request.AnswerStatus(w.w, w.Request, metav1.Status{Status: metav1.StatusSuccess, Code: http.StatusCreated})
		return nil
	}
	return h.respondResult(w.call, w.view, http.StatusCreated, registry.Result{Tree: t})
}

// connect passes the request to the Connecter of the subresource. Streams are not buffered for
// compression.
func (h *Handler) connect(r *call) error {
	c := resource.Connection{Path: r.below, Method: r.Method}
	query := r.URL.Query()
	s := r.target.Version.Subresource(r.target.Subresource)
	if !s.Reads && len(query["dryRun"]) > 0 {
		return status.BadRequest("dryRun is not supported")
	}
	if s.ReadOptions != nil {
		if s.PathsBelow {
			query["path"] = []string{r.below}
		}
		var err error
		if c.Options, err = s.ReadOptions(query); err != nil {
			return status.BadRequest("%v", err)
		}
	}
	to, err := h.registry.Connect(r.Context(), r.target, c, r.warned.add)
	if err != nil {
		return err
	}
	w := r.w
	if c, ok := w.(*compressor); ok {
		w = c.ResponseWriter
	}
	to.ServeHTTP(w, r.Request)
	return nil
}
