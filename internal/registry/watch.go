package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

const (
	// initialBatch is the number of initial events that Next returns at once.
	initialBatch = 256
	// keptEvents is the number of events for which an idle watch keeps its buffer.
	keptEvents = 16
)

// WatchOptions are the options of a watch.
type WatchOptions struct {
	Selection Selection
	// Shard is a shard selector that restricts the selection, or "". Missed is called for each object
	// outside the shard; for a change, for the object before it, too. It may be nil.
	Shard           string
	Missed          func()
	ResourceVersion string
	// SendInitialEvents requests or forbids an ADDED event for each existing object. If it is nil,
	// ResourceVersion decides: yes for "" and "0".
	SendInitialEvents *bool
	// Allow returns an error if the client may not see the events after a revision. It may be nil.
	Allow func(ctx context.Context, revision int64) error
}

// A Watch delivers the events of the selected objects to a client.
type Watch struct {
	registry  *Registry
	target    Target
	selection Selection
	watcher   *watchcache.Watcher
	initial   []*watchcache.Object
	// from is the revision that the client has. It may be in the future.
	from   int64
	events []WatchEvent // the result of Next
}

// A WatchEvent is an event as the selection of the watch sees it.
type WatchEvent struct {
	Type watch.EventType
	// Object after the event, or its last selected state.
	Object *watchcache.Object
	// Revision of Object for the client.
	Revision int64
	Shared   Shared
}

// Shared caches data derived from events, for all watchers of them. The key must cover everything on
// which compute depends.
type Shared interface {
	Memo(key any, m watchcache.Validity, compute func() ([]byte, error)) ([]byte, error)
}

// A Portion is the result of one Next.
type Portion struct {
	Events []WatchEvent // valid until the next portion of the watch
	// Shared is nil if no other watcher has the same events.
	Shared Shared
}

// Watch starts a watch of target's namespace, or of all namespaces.
func (r *Registry) Watch(ctx context.Context, target Target, o WatchOptions) (*Watch, error) {
	w := &Watch{registry: r, target: target, selection: o.Selection}
	if err := w.selection.narrow(o.Shard, o.Missed); err != nil {
		return nil, err
	}
	cached := r.cache.Resource(target.Definition.StoragePrefix)
	prefix := target.Definition.NamespacePrefix(target.Namespace)
	revision, err := parseAsked(o.ResourceVersion)
	if err != nil {
		return nil, err
	}
	initial := revision == 0
	if o.SendInitialEvents != nil {
		initial = *o.SendInitialEvents
	}
	if !initial && revision > 0 {
		if o.Allow != nil {
			if err := o.Allow(ctx, revision); err != nil {
				return nil, err
			}
		}
		w.from = revision
		w.watcher, err = cached.Watch(ctx, prefix, revision)
		return w, w.explain(err)
	}
	if err := r.reach(ctx, o.ResourceVersion); err != nil {
		return nil, err
	}
	s, err := cached.Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, StorageError(err)
	}
	w.from = s.Revision()
	if initial {
		ctx := r.Hold(ctx, target.Definition)
		scope, _ := w.selection.scope(&target)
		for item, err := range r.selected(ctx, &w.selection, &target, s, scope, "") {
			if err != nil && (item == nil || item.Err() == nil) {
				return nil, err
			}
			w.initial = append(w.initial, item) // including one that fails the watch
		}
	}
	w.watcher, err = cached.Watch(ctx, prefix, w.from)
	return w, w.explain(err)
}

// Close ends the watch.
func (w *Watch) Close() { w.watcher.Close() }

// Initial reports whether initial events remain.
func (w *Watch) Initial() bool { return len(w.initial) > 0 }

// Progress returns the revision from which a client with all events so far can resume.
func (w *Watch) Progress() int64 {
	if w.Initial() {
		return 0
	}
	return max(w.from, w.watcher.Progress())
}

// Next waits for events. If ctx ends first, the watch stays usable. A watch that cannot continue
// returns a Status or ErrEnded.
func (w *Watch) Next(ctx context.Context) (Portion, error) {
	clear(w.events)
	if w.events = w.events[:0]; cap(w.events) > keptEvents {
		w.events = nil
	}
	if w.Initial() {
		n := min(len(w.initial), initialBatch)
		for _, o := range w.initial[:n] {
			w.events = append(w.events, WatchEvent{watch.Added, o, o.Revision, o})
		}
		if w.initial = w.initial[n:]; len(w.initial) == 0 {
			w.initial = nil // a watch lives long, and must not hold the initial objects
		}
		return Portion{Events: w.events}, nil
	}
	batch, err := w.watcher.Next(ctx)
	if err != nil {
		return Portion{}, w.explain(err)
	}
	ctx = w.registry.Hold(ctx, w.target.Definition)
	w.warm(ctx, batch.Events)
	for _, e := range batch.Events {
		if e.Revision <= w.from {
			continue
		}
		event, ok, err := w.see(ctx, e)
		if err != nil {
			return Portion{}, err
		}
		if ok {
			w.events = append(w.events, event)
		}
	}
	p := Portion{Events: w.events}
	if w.selection.All() && len(w.events) == len(batch.Events) {
		p.Shared = &batch
	}
	return p, nil
}

// ErrEnded is the regular end of a watch: the resource is gone, or the server stops.
var ErrEnded = errors.New("the watch has ended")

func (w *Watch) explain(err error) error {
	var compacted *kv.CompactedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &compacted):
		return status.Expired(fmt.Sprintf("too old resource version: %d (%d)", w.from, compacted.Oldest))
	case errors.Is(err, watchcache.ErrGone), errors.Is(err, watchcache.ErrStopped), errors.Is(err, kv.ErrClosed):
		return ErrEnded
	default:
		return StorageError(err)
	}
}

// warm converts the objects that the selection needs, in one batch.
func (w *Watch) warm(ctx context.Context, events []*watchcache.Event) {
	d := w.target.Definition
	if len(w.selection.wanted) == 0 || d.Convert == nil {
		return
	}
	objects := make([]*watchcache.Object, 0, 2*len(events))
	for _, e := range events {
		objects = append(objects, e.Prev, e.Object)
	}
	// An error comes again from the later look at the object.
	_ = w.registry.Warm(ctx, d, w.target.Version, slices.Values(objects))
}

// see turns an event of the store into one of the watch: an object that enters the selection is added,
// one that leaves it is deleted.
func (w *Watch) see(ctx context.Context, e *watchcache.Event) (WatchEvent, bool, error) {
	now, err := w.sees(ctx, e, e.Object)
	if err != nil {
		return WatchEvent{}, false, err
	}
	before, err := w.sees(ctx, e, e.Prev)
	if err != nil {
		return WatchEvent{}, false, err
	}
	switch {
	case now && before:
		return WatchEvent{watch.Modified, e.Object, e.Revision, e}, true, nil
	case now:
		return WatchEvent{watch.Added, e.Object, e.Revision, e}, true, nil
	case before:
		return WatchEvent{watch.Deleted, e.Prev, e.Revision, e}, true, nil
	default:
		return WatchEvent{}, false, nil
	}
}

// eventKey is the key of a field's value in the object of an event, or in the object before it.
type eventKey struct {
	viewKey
	field  string
	before bool
}

// sees reports whether the watch selects an object of an event, which may be nil. All watchers of an
// event share the result.
func (w *Watch) sees(ctx context.Context, e *watchcache.Event, o *watchcache.Object) (bool, error) {
	switch {
	case o == nil:
		return false, nil
	case o.Err() != nil:
		// The selection is unknown. Showing the object makes the watch fail; hiding it could lose a
		// match.
		return true, nil
	}
	return w.selection.matches(o, func(field string) (string, error) {
		key := eventKey{viewKey{w.target.Definition.Identity(), w.target.Version.Name}, field, o == e.Prev}
		value, err := e.Memo(key, w.registry.Validity(ctx, w.target.Definition), func() ([]byte, error) {
			v, err := w.registry.valueOf(context.WithoutCancel(ctx), &w.target, o, field)
			return []byte(v), err
		})
		return string(value), err
	})
}

// ViewAt is View of the object of a watch event.
func (r *Registry) ViewAt(ctx context.Context, d *resource.Definition, v *resource.Version, e WatchEvent) (object.Encoded, error) {
	shown, err := r.View(ctx, d, v, e.Object)
	shown.Revision = e.Revision
	return shown, err
}
