package rest

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// changeListVersion is the apiVersion of a list of changes.
const changeListVersion = "history.anykind.dev/v1"

// history answers with the changes of an object or of a collection, oldest first.
func (h *Handler) history(r *call) error {
	if r.target.Subresource != "" {
		return status.BadRequest("a subresource has no history of its own: leave out /%s", r.target.Subresource)
	}
	o, err := changeOptionsOf(r.URL.Query())
	if err != nil {
		return err
	}
	ctx := h.registry.Hold(r.Context(), r.target.Definition)
	kept, err := h.registry.Kept(ctx, r.target)
	if err != nil {
		return err
	}
	visible := &visibleChanges{registry: h.registry, hidden: h.hidden(r), target: &r.target, until: kept}
	if o.limit > 0 {
		if o.since, err = visible.beforeNewest(ctx, o); err != nil {
			return err
		}
	}
	r.w.Header().Set("Content-Type", codec.Format{}.ContentType())
	wire := false
	w := changesWriter{handler: h, definition: r.target.Definition, version: r.target.Version}
	err = r.stream(&codec.View{}, func(to io.Writer, _ *codec.View) error {
		w.to, wire = to, to == io.Writer(r.w)
		return w.write(ctx, visible, o.since)
	})
	if err != nil && w.sent && wire {
		panic(http.ErrAbortHandler) // The client must not mistake the part that it has for the whole.
	}
	return err
}

// visibleChanges are the changes of an object or of a collection that the user may see.
type visibleChanges struct {
	registry *registry.Registry
	hidden   hidden
	target   *registry.Target
	until    int64 // the revision of the last one

	denied error // of the last change that the user may not see
}

// after yields the changes after a revision.
func (v *visibleChanges) after(ctx context.Context, revision int64) iter.Seq2[registry.PastChange, error] {
	return func(yield func(registry.PastChange, error) bool) {
		for c, err := range v.registry.History(ctx, *v.target, revision, v.until) {
			if err == nil {
				err = v.hidden.err(ctx, c.Revision)
			}
			if status.Is(err, metav1.StatusReasonForbidden) {
				v.denied = err
				continue
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

// beforeNewest returns the revision after which the newest changes begin, of the number of the limit.
func (v *visibleChanges) beforeNewest(ctx context.Context, o changeOptions) (int64, error) {
	var ring []int64 // the newest revisions
	n := 0
	for c, err := range v.after(ctx, o.since) {
		if err != nil {
			return 0, err
		}
		if len(ring) < o.limit {
			ring = append(ring, c.Revision)
		} else {
			ring[n%o.limit] = c.Revision
		}
		n++
	}
	if n <= o.limit {
		return o.since, nil
	}
	return ring[n%o.limit] - 1, nil
}

// A changesWriter writes a list of changes. Its memory is bounded by the size of one change.
type changesWriter struct {
	handler *Handler
	// definition and version are the form of the objects of the next change.
	definition *resource.Definition
	version    *resource.Version
	to         io.Writer
	place      *resource.Place // of the object of the next change; nil for a list of one collection
	buf        []byte
	items      int
	sent       bool // a part has been written
}

// changesChunk is the size of a part. A shorter list that fails is answered with a Status.
const changesChunk = 64 << 10

// write writes the list of the changes after a revision. If the user may see none of them, that is an error.
func (w *changesWriter) write(ctx context.Context, changes *visibleChanges, after int64) error {
	w.begin(changes.until, 0)
	for c, err := range changes.after(ctx, after) {
		if err != nil {
			return err
		}
		if err := w.add(ctx, c); err != nil {
			return err
		}
	}
	if w.items == 0 && changes.denied != nil {
		return changes.denied
	}
	if w.items == 0 && changes.target.Name != "" {
		if _, err := w.handler.registry.Get(ctx, *changes.target, ""); err != nil {
			return err
		}
	}
	return w.end()
}

// begin writes the revision up to which the list is complete, and that of the next older change; 0 for none.
func (w *changesWriter) begin(revision, earlier int64) {
	w.buf = append(w.buf, `{"kind":"ChangeList","apiVersion":"`+changeListVersion+`","metadata":{"resourceVersion":"`...)
	w.buf = append(strconv.AppendInt(w.buf, revision, 10), '"')
	if earlier != 0 {
		w.buf = append(strconv.AppendInt(append(w.buf, `,"earlier":"`...), earlier, 10), '"')
	}
	w.buf = append(w.buf, `},"items":[`...)
}

func (w *changesWriter) end() error {
	w.buf = append(w.buf, "]}\n"...)
	return w.flush()
}

// A change is an item of a list of changes, without its objects.
type change struct {
	Revision    string `json:"revision"`
	Time        string `json:"time,omitempty"`
	Type        string `json:"type"`
	User        string `json:"user,omitempty"`
	Verb        string `json:"verb,omitempty"`
	Manager     string `json:"manager,omitempty"`
	Subresource string `json:"subresource,omitempty"`
	Request     string `json:"request,omitempty"`
	*resource.Place
	// Error is the reason for which an object of the change cannot be shown, such as a failed conversion.
	Error string `json:"error,omitempty"`
}

// add writes a change. An object that cannot be shown does not hide the others.
func (w *changesWriter) add(ctx context.Context, c registry.PastChange) error {
	if w.items++; w.items > 1 {
		w.buf = append(w.buf, ',')
	}
	item := change{
		Place:    w.place,
		Revision: strconv.FormatInt(c.Revision, 10), Type: string(c.Type),
		User: c.Note.User, Verb: c.Note.Verb, Manager: c.Note.Manager, Subresource: c.Note.Subresource, Request: c.Note.Request,
	}
	if !c.Time.IsZero() {
		item.Time = c.Time.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	before, err := w.shown(ctx, c.Before)
	if err != nil {
		item.Error = err.Error()
	}
	after, err := w.shown(ctx, c.Object)
	if err != nil {
		item.Error = err.Error()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	head, err := json.Marshal(item)
	if err != nil {
		return err
	}
	w.buf = append(w.buf, head[:len(head)-1]...)
	for _, part := range []struct {
		name string
		data []byte
	}{{"before", before}, {"object", after}} {
		if part.data != nil {
			w.buf = append(append(w.buf, `,"`+part.name+`":`...), part.data...)
		}
	}
	w.buf = append(w.buf, '}')
	if len(w.buf) < changesChunk {
		return nil
	}
	return w.flush()
}

// shown returns the JSON of an object in the version of the path; nil for none.
func (w *changesWriter) shown(ctx context.Context, o *watchcache.Object) ([]byte, error) {
	if o == nil {
		return nil, nil
	}
	d, v := w.definition, w.version
	shown, err := w.handler.registry.View(ctx, d, v, o)
	if err != nil {
		return nil, err
	}
	return shown.Append(nil, d.APIVersion(v.Name)), nil
}

func (w *changesWriter) flush() error {
	w.sent = true
	_, err := w.to.Write(w.buf)
	w.buf = w.buf[:0]
	return err
}
