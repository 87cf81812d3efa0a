package rest

import (
	"context"
	"io"
	"iter"
	"net/http"
	"slices"
	"sort"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/watchcache"
)

func (h *Handler) get(r *call) error {
	if r.turnsOn("history") {
		return h.history(r)
	}
	view, err := r.view(codec.One)
	if err != nil {
		return err
	}
	if r.turnsOn("export") {
		return status.BadRequest("the export parameter, deprecated since v1.14, is no longer supported")
	}
	o, err := queryOptions(r, metav1.Convert_url_Values_To_v1_GetOptions)
	if err != nil {
		return err
	}
	found, err := h.read(r, o.ResourceVersion)
	if err != nil {
		return err
	}
	if err := r.fits(view, codec.One); err != nil {
		return err
	}
	if r.projection() != nil {
		t, err := h.registry.Decode(r.Context(), r.target.Definition, r.target.Version, found)
		if err != nil {
			return err
		}
		return h.respondResult(r, view, http.StatusOK, registry.Result{Tree: t})
	}
	shown, err := h.registry.View(r.Context(), r.target.Definition, r.target.Version, found)
	if err != nil {
		return err
	}
	return r.answer(view, http.StatusOK, func(view *codec.View) ([]byte, error) {
		return view.Render(&shown, h.part(r.Context(), &r.target, view, &found))
	})
}

// turnsOn reports whether a parameter of the query is true, as Kubernetes reads it.
func (r *call) turnsOn(name string) bool {
	if !request.MayHave(r.Request, name) {
		return false
	}
	values, asked := r.URL.Query()[name]
	return asked && values[0] != "0" && !strings.EqualFold(values[0], "false")
}

func (h *Handler) list(r *call) error {
	if r.turnsOn("history") {
		return h.history(r)
	}
	view, err := r.view(codec.List)
	if err != nil {
		return err
	}
	o, err := queryOptions(r, metav1.Convert_url_Values_To_v1_ListOptions)
	if err != nil {
		return err
	}
	if err := invalidList(&o, validateList(&o)); err != nil {
		return err
	}
	selection, err := r.selection(&o)
	if err != nil {
		return err
	}
	if err := h.asOf(r, &o, metav1.ResourceVersionMatchExact); err != nil {
		return err
	}
	ctx := h.registry.Hold(r.Context(), r.target.Definition)
	l, err := h.registry.List(ctx, r.target, h.listOptions(selection, &o))
	if err != nil {
		return err
	}
	if err := r.fits(view, codec.List); err != nil {
		return err
	}
	return h.writeList(ctx, r, view, l)
}

func (h *Handler) listOptions(s registry.Selection, o *metav1.ListOptions) registry.ListOptions {
	return registry.ListOptions{
		Selection:       s,
		Shard:           h.shardSelector(o),
		ResourceVersion: o.ResourceVersion,
		Match:           o.ResourceVersionMatch,
		Limit:           o.Limit,
		Continue:        o.Continue,
		Allow:           h.allow,
	}
}

// invalidList rejects invalid options of a list or watch. A malformed selector is reported first.
// selection reports unsupported fields later.
func invalidList(o *metav1.ListOptions, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	if _, err := labels.Parse(o.LabelSelector); err != nil {
		return status.BadRequest("%v", err)
	}
	if _, err := fields.ParseSelector(o.FieldSelector); err != nil {
		return status.BadRequest("%v", err)
	}
	return invalidOptions("ListOptions", errs)
}

// selection reads the selectors of a request. In a request with a name they select that object.
// Malformed selectors are rejected before that.
func (r *call) selection(o *metav1.ListOptions) (registry.Selection, error) {
	d, v, name, fieldSelector := r.target.Definition, r.target.Version, r.info.Name, o.FieldSelector
	if name == "" {
		return registry.Select(d, v, o.LabelSelector, fieldSelector)
	}
	asked, err := fields.ParseSelector(fieldSelector)
	if err == nil && asked.Empty() {
		asked = fields.OneTermEqualSelector("metadata.name", name)
		fieldSelector = asked.String()
	}
	s, err := registry.Select(d, v, o.LabelSelector, fieldSelector)
	if err != nil { // one of the selectors cannot be parsed
		return s, err
	}
	if value, ok := asked.RequiresExactMatch("metadata.name"); !ok || value != name {
		return s, status.BadRequest("fieldSelector metadata.name doesn't match requested name")
	}
	return s, nil
}

// writeList streams a list. Everything that can fail happens before the first byte. Whatever the length
// of the list, it takes the memory of one chunk.
func (h *Handler) writeList(ctx context.Context, r *call, view *codec.View, l *registry.List) error {
	d, v, items := r.target.Definition, r.target.Version, l.Items.All()
	if err := h.registry.Warm(ctx, d, v, items); err != nil {
		return err
	}
	turn := h.inTurn(r)
	defer turn.give()
	marked, err := h.defaultOf(ctx, r, view, l)
	if err != nil {
		return err
	}
	var item *watchcache.Object // of each of the loops
	part := h.part(ctx, &r.target, view, &item)
	if of := part; marked != nil {
		part = func() ([]byte, error) {
			if item.Name() == object.Name(marked) {
				return view.Columns.Default(marked), nil
			}
			return of()
		}
	}
	var size codec.ListSize
	for item = range items {
		if err := h.registry.Check(ctx, d, v, item); err != nil {
			return err
		}
		if err := size.Add(part); err != nil {
			return err
		}
		turn.yield()
	}
	if items, err = h.rows(ctx, r, view, items); err != nil {
		return err
	}
	r.w.Header().Set("Content-Type", view.Format.ContentType())
	err = r.stream(view, func(to io.Writer, view *codec.View) error {
		out := view.NewList(to, codec.ListMeta{
			ResourceVersion: l.Revision, Continue: l.Continue, RemainingItemCount: l.Remaining, ShardSelector: l.Shard, Size: size,
		})
		var shown object.Encoded // reused: AppendItem does not retain it
		for item = range items {
			var err error
			if shown, err = h.registry.View(ctx, d, v, item); err != nil {
				return err
			}
			if err := out.Add(&shown, part); err != nil {
				return err
			}
		}
		return out.Close()
	})
	if err != nil {
		// The client must not mistake the part that it has for the whole.
		panic(http.ErrAbortHandler)
	}
	return nil
}

// rows returns the items of a list in the order of the answer. A Table may have its own order.
func (h *Handler) rows(ctx context.Context, r *call, view *codec.View, items iter.Seq[*watchcache.Object]) (iter.Seq[*watchcache.Object], error) {
	d, v := r.target.Definition, r.target.Version
	if v.CompareRows == nil || view.Format.As != codec.Table {
		return items, nil
	}
	type row struct {
		item *watchcache.Object
		obj  object.Tree
	}
	var rows []row
	for item := range items {
		obj, err := h.registry.Decode(ctx, d, v, item)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{item, obj})
	}
	sort.SliceStable(rows, func(i, k int) bool { return v.CompareRows(rows[i].obj, rows[k].obj) < 0 })
	sorted := make([]*watchcache.Object, len(rows))
	for i, r := range rows {
		sorted[i] = r.item
	}
	return slices.Values(sorted), nil
}

// defaultOf returns the object that the Table marks as the default, or nil.
func (h *Handler) defaultOf(ctx context.Context, r *call, view *codec.View, l *registry.List) (object.Tree, error) {
	d, v := r.target.Definition, r.target.Version
	if v.DefaultOf == nil || view.Format.As != codec.Table {
		return nil, nil
	}
	var objs []map[string]any
	for item := range l.Items.All() {
		obj, err := h.registry.Decode(ctx, d, v, item)
		if err != nil {
			return nil, err
		}
		objs = append(objs, obj)
	}
	name := v.DefaultOf(objs)
	for _, obj := range objs {
		if object.Name(obj) == name {
			return obj, nil
		}
	}
	return nil, nil
}

// cellsKey identifies the cells of an object in the Tables of a version.
type cellsKey struct {
	of      any // the identity of the Definition
	version string
}

// messageKey identifies the protobuf of an object in one view.
type messageKey struct {
	of      any // the identity of the Definition
	version string
	view    codec.Key
}

// part returns a function that computes, once for each object, the data that view needs of the object at
// item besides its bytes. It returns nil if the view needs none.
func (h *Handler) part(ctx context.Context, target *registry.Target, view *codec.View, item **watchcache.Object) codec.Part {
	if view.Format.As != codec.Table && view.Format.Media != codec.Protobuf {
		return nil
	}
	d, v := target.Definition, target.Version
	shared := context.WithoutCancel(ctx) // other requests wait for the result too
	var key any
	var compute func() ([]byte, error)
	if view.Format.As == codec.Table {
		key = cellsKey{d.Identity(), v.Name}
		compute = func() ([]byte, error) {
			t, err := h.registry.Decode(shared, d, v, *item)
			if err != nil {
				return nil, err
			}
			return view.Columns.Cells(t), nil
		}
	} else {
		form, _ := view.Key()
		key = messageKey{d.Identity(), v.Name, form}
		compute = func() ([]byte, error) {
			shown, err := h.registry.View(shared, d, v, *item)
			if err != nil {
				return nil, err
			}
			return view.Message(&shown)
		}
	}
	validity := h.registry.Validity(ctx, d)
	return func() ([]byte, error) { return (*item).Memo(key, validity, compute) }
}

// respondResult writes an object after a write.
func (h *Handler) respondResult(r *call, view *codec.View, code int, result registry.Result) error {
	if p := r.projection(); p != nil {
		t, err := p.Show(result.Tree)
		if err != nil {
			return err
		}
		result = registry.Result{Tree: t}
	}
	if result.Revision == 0 && view.Format.As == codec.Whole {
		return r.answer(view, code, func(view *codec.View) ([]byte, error) { return view.RenderTree(result.Tree) })
	}
	shown, err := encoded(&result)
	if err != nil {
		return err
	}
	return r.answer(view, code, func(view *codec.View) ([]byte, error) {
		return view.Render(&shown, func() ([]byte, error) {
			if view.Format.As == codec.Table {
				return view.Columns.Cells(result.Tree), nil
			}
			return view.Message(&shown)
		})
	})
}

// encoded returns a result as bytes.
func encoded(result *registry.Result) (object.Encoded, error) {
	if result.Stored.JSON != nil {
		return result.Stored, nil
	}
	revision := result.Revision
	if revision == 0 {
		revision, _ = registry.ParseRevision(object.ResourceVersion(result.Tree))
	}
	return object.Scan(object.AppendJSON(nil, result.Tree), revision)
}

// validateList returns the errors in the options of a list.
func validateList(o *metav1.ListOptions) (errs field.ErrorList) {
	at := field.NewPath("resourceVersionMatch")
	if match := o.ResourceVersionMatch; match != "" {
		if o.ResourceVersion == "" {
			errs = append(errs, field.Forbidden(at, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
		}
		if o.Continue != "" {
			errs = append(errs, field.Forbidden(at, "resourceVersionMatch is forbidden when continue is provided"))
		}
		if match != metav1.ResourceVersionMatchExact && match != metav1.ResourceVersionMatchNotOlderThan {
			errs = append(errs, field.NotSupported(at, match, []string{
				string(metav1.ResourceVersionMatchExact), string(metav1.ResourceVersionMatchNotOlderThan), ""}))
		}
		if match == metav1.ResourceVersionMatchExact && o.ResourceVersion == "0" {
			errs = append(errs, field.Forbidden(at, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`))
		}
	}
	if o.SendInitialEvents != nil {
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for list"))
	}
	return errs
}

// validateWatch returns the errors in the options of a watch. initial allows sendInitialEvents.
func validateWatch(o *metav1.ListOptions, initial bool) (errs field.ErrorList) {
	at := field.NewPath("resourceVersionMatch")
	match := o.ResourceVersionMatch
	if o.SendInitialEvents != nil && match != metav1.ResourceVersionMatchNotOlderThan {
		errs = append(errs, field.Forbidden(at, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
	}
	if o.SendInitialEvents != nil && !initial {
		errs = append(errs, field.Forbidden(field.NewPath("sendInitialEvents"), "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"))
	}
	if match != "" {
		if o.SendInitialEvents == nil {
			errs = append(errs, field.Forbidden(at, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"))
		}
		if match != metav1.ResourceVersionMatchNotOlderThan {
			errs = append(errs, field.NotSupported(at, match, []string{string(metav1.ResourceVersionMatchNotOlderThan)}))
		}
		if o.Continue != "" {
			errs = append(errs, field.Forbidden(at, "resourceVersionMatch is forbidden when continue is provided"))
		}
	}
	return errs
}
