package rest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// lastBookmark is how long before its end a watch gets a last bookmark, so that
// its client resumes from as late as can be.
const lastBookmark = 2 * time.Second

func (h *Handler) watch(r *call) error {
	view, err := r.view(codec.Watch)
	if err != nil {
		return err
	}
	o, err := queryOptions(r, metav1.Convert_url_Values_To_v1_ListOptions)
	if err != nil {
		return err
	}
	if o.Watch { // which is not said in the paths of old
		askInitialEvents(&o)
		err = invalidList(&o, validateWatch(&o))
	} else {
		err = invalidList(&o, validateList(&o))
	}
	if err != nil {
		return err
	}
	selection, err := r.selection(&o)
	if err != nil {
		return err
	}
	ctx := r.Context()
	watch, refused := h.registry.Watch(ctx, r.target, registry.WatchOptions{
		Selection:         selection,
		ResourceVersion:   o.ResourceVersion,
		SendInitialEvents: o.SendInitialEvents,
	})
	if refused == nil {
		defer watch.Close()
	} else if !saysInStream(refused) {
		return refused
	}
	if err := r.fits(view, codec.Watch); err != nil {
		return err
	}
	now := time.Now()
	s := &stream{
		handler: h, call: r, view: view, sent: h.sent.of(r.target.Definition, r.target.Version.Name), watch: watch,
		out:       http.NewResponseController(r.w),
		patience:  patience{out: http.NewResponseController(r.w)},
		bookmarks: o.AllowWatchBookmarks,
		end:       now.Add(h.lifetime(o.TimeoutSeconds)),
		forget:    func() {},
	}
	s.scheduleBookmark(now)
	if key, alike := view.Key(); alike {
		s.together = s.key(key, "")
	}
	s.initialEnd = o.AllowWatchBookmarks && o.SendInitialEvents != nil && *o.SendInitialEvents
	if wantsSocket(r.Request) {
		s.overSocket(ctx, refused)
		return nil
	}
	r.w.Header().Set("Content-Type", view.Format.StreamContentType())
	s.tell(ctx, refused)
	return nil
}

// tell tells the client what happens, or why it is not told.
func (s *stream) tell(ctx context.Context, refused error) {
	defer s.patience.stop()
	if refused != nil {
		s.fail(refused)
		return
	}
	s.open()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer s.call.target.Definition.OnRetired(cancel)()
	defer func() { s.forget() }()
	s.run(ctx)
}

// askInitialEvents makes a watch that begins with what there is say so, as clients
// do that know how. It then learns where that ends.
func askInitialEvents(o *metav1.ListOptions) {
	begins := o.ResourceVersion == "" || o.ResourceVersion == "0"
	if begins && o.SendInitialEvents == nil && o.ResourceVersionMatch == "" {
		o.SendInitialEvents, o.ResourceVersionMatch = &begins, metav1.ResourceVersionMatchNotOlderThan
	}
}

// saysInStream reports whether an error is one that a watch says in its own
// language: that the revision is too old, or has not happened yet.
func saysInStream(err error) bool {
	return status.Is(err, metav1.StatusReasonExpired) || status.Is(err, metav1.StatusReasonTimeout)
}

// lifetime is how long a watch lasts. Those that do not say last longer or less
// long by chance, so that they do not all come back at once.
func (h *Handler) lifetime(seconds *int64) time.Duration {
	if seconds != nil && *seconds != 0 {
		return time.Duration(*seconds) * time.Second
	}
	return h.options.MinWatch + rand.N(h.options.MinWatch)
}

// A stream is one watch on its way to its client.
type stream struct {
	handler *Handler
	call    *call
	view    *codec.View
	sent    *sent
	watch   *registry.Watch
	out     *http.ResponseController
	socket  *socket // nil for a client that is told by the body of an answer

	patience   patience
	bookmarks  bool
	bookmark   time.Time // when the next one is due
	initialEnd bool      // the bookmark that ends the initial events is due
	end        time.Time
	written    bool
	together   any // the key of what is told at once, nil if that is only for this watch

	// wait ends at until, when there is something to do although nothing happens.
	wait   context.Context
	until  time.Time
	forget context.CancelFunc
}

// run writes events until the watch or its time is over. However much happens,
// bookmarks are written and the end comes when they are due.
func (s *stream) run(ctx context.Context) {
	ended := false
	for {
		now := time.Now()
		switch {
		case !now.Before(s.end), s.call.Context().Err() != nil:
			return
		case s.bookmarkDue(now):
			if !s.writeBookmark() {
				return
			}
			continue
		}
		portion, err := s.watch.Next(s.waiting(ctx))
		switch {
		case err == nil:
		case ctx.Err() != nil && !ended:
			ended = true // but something may have happened just before
			continue
		case ctx.Err() != nil, errors.Is(err, registry.ErrEnded):
			return
		case errors.Is(err, context.DeadlineExceeded):
			continue
		default:
			s.fail(err)
			return
		}
		if !s.current() || !s.write(ctx, portion) {
			return
		}
	}
}

// bookmarkDue reports whether the client should get a bookmark. The one that ends
// the initial events comes right behind them.
func (s *stream) bookmarkDue(now time.Time) bool {
	if s.initialEnd {
		return !s.watch.Initial()
	}
	return s.bookmarks && !now.Before(s.bookmark)
}

// wake is when there is something to do although nothing happens.
func (s *stream) wake() time.Time {
	if s.bookmarks && s.bookmark.Before(s.end) {
		return s.bookmark
	}
	return s.end
}

// waiting returns a context that ends when there is something to do although
// nothing happens. It is the same one until that is due.
func (s *stream) waiting(ctx context.Context) context.Context {
	if wake := s.wake(); !wake.Equal(s.until) {
		s.forget()
		s.until = wake
		s.wait, s.forget = context.WithDeadline(ctx, wake)
	}
	return s.wait
}

// current reports whether the watch shows objects as they are now. One that was
// started by another Definition of the resource ends, as in Kubernetes: its client
// comes back and sees them by the one that is in force. When there is none, what
// happened to the last objects is still told.
func (s *stream) current() bool {
	d := s.call.target.Definition
	select {
	case <-d.Retired():
		return s.handler.catalog.Set().Lookup(d.Group, d.Plural) == nil
	default:
		return true
	}
}

// frameKey names the bytes of an event in one view.
type frameKey struct {
	definition *resource.Definition
	version    string
	view       codec.Key
	event      string // "" for those of a portion
}

func (s *stream) key(view codec.Key, event string) frameKey {
	target := &s.call.target
	return frameKey{target.Definition, target.Version.Name, view, event}
}

// writeChunk is how many bytes of events are gathered before they are written. A
// longer event is written as it is.
const writeChunk = 32 << 10

// A chunk is space for that. A watch has it only while it writes.
type chunk [writeChunk]byte

// write writes events and reports whether the watch goes on.
func (s *stream) write(ctx context.Context, p registry.Portion) bool {
	if len(p.Events) == 0 {
		return true
	}
	d := s.call.target.Definition
	ctx = s.handler.registry.Hold(ctx, d)
	if s.socket != nil {
		return s.writeMessages(ctx, p.Events)
	}
	if p.Shared != nil && s.together != nil {
		moment := s.handler.registry.Moment(ctx, d)
		frames, err := p.Shared.Memo(s.together, moment, func() ([]byte, error) { return s.frames(ctx, p.Events) })
		if err == nil {
			s.written = true
			return s.send(s.sent.cutSizes(frames, len(p.Events)))
		}
		// Those before the event that cannot be shown are told.
	}
	return s.writeEach(ctx, p.Events)
}

// frames returns the bytes of events, one behind the other. If there are several events, their
// sizes come behind them.
func (s *stream) frames(ctx context.Context, events []registry.WatchEvent) ([]byte, error) {
	s.warm(ctx, events)
	if len(events) == 1 {
		return s.frame(ctx, events[0])
	}
	var all, sizes []byte
	for i, e := range events {
		frame, err := s.frame(ctx, e)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			all = make([]byte, 0, len(events)*(len(frame)+len(frame)/8+sizeBytes))
			sizes = make([]byte, 0, len(events)*sizeBytes)
		}
		all, sizes = append(all, frame...), appendSize(sizes, frame)
	}
	return append(all, sizes...), nil
}

// writeEach writes events that no other watch writes together. However many they
// are, a watch whose client takes nothing holds a chunk of them.
func (s *stream) writeEach(ctx context.Context, events []registry.WatchEvent) bool {
	s.warm(ctx, events)
	chunks := &s.handler.chunks
	space, ok := chunks.Get().(*chunk)
	if !ok {
		space = new(chunk)
	}
	if !s.writeThrough(ctx, space, events) {
		return false // net/http may still be at what it failed to write
	}
	chunks.Put(space)
	return true
}

func (s *stream) writeThrough(ctx context.Context, space *chunk, events []registry.WatchEvent) bool {
	buf := space[:0]
	var t tally
	defer func() { s.sent.add(&t) }()
	for _, e := range events {
		frame, err := s.frame(ctx, e)
		if err != nil {
			s.send(buf)
			s.fail(err)
			return false
		}
		if len(buf)+len(frame) > writeChunk {
			if !s.put(buf) {
				return false
			}
			buf = buf[:0]
		}
		if len(frame) <= writeChunk {
			buf = append(buf, frame...)
		} else if !s.put(frame) {
			return false
		}
		t.add(len(frame))
		s.written = true
	}
	return s.send(buf)
}

// warm has objects that must be converted to be shown converted together.
func (s *stream) warm(ctx context.Context, events []registry.WatchEvent) {
	target := &s.call.target
	if target.Definition.Convert == nil || len(events) < 2 {
		return
	}
	objects := make([]*watchcache.Object, len(events))
	for i := range events {
		objects[i] = events[i].Object
	}
	// An error comes again with the first event that it is about.
	_ = s.handler.registry.Warm(ctx, target.Definition, target.Version, objects)
}

// frame returns the bytes of an event, which are made once for all watches that
// show it in the same way.
func (s *stream) frame(ctx context.Context, e registry.WatchEvent) ([]byte, error) {
	target := &s.call.target
	make := func() ([]byte, error) {
		shown, err := s.handler.registry.ViewAt(ctx, target.Definition, target.Version, e)
		if err != nil {
			return nil, err
		}
		cells := s.handler.part(ctx, target, s.view, e.Object)
		return s.view.AppendFrame(nil, string(e.Type), &shown, cells, !s.written)
	}
	key, shared := s.view.Key()
	if !shared {
		return make()
	}
	return e.Shared.Memo(s.key(key, string(e.Type)), s.handler.registry.Moment(ctx, target.Definition), make)
}

// scheduleBookmark says when the bookmark after now is due.
func (s *stream) scheduleBookmark(now time.Time) {
	s.bookmark = now.Add(s.handler.options.BookmarkEvery)
	if last := s.end.Add(-lastBookmark); last.After(now) && last.Before(s.bookmark) {
		s.bookmark = last
	}
}

// writeBookmark writes a bookmark if one is due and there is something it can
// say.
func (s *stream) writeBookmark() bool {
	s.scheduleBookmark(time.Now())
	revision := s.watch.Progress()
	if revision == 0 {
		return true
	}
	bookmark := s.view.AppendBookmark(nil, revision, s.initialEnd, !s.written)
	s.initialEnd, s.written = false, true
	s.sent.addOne(len(bookmark))
	return s.send(bookmark)
}

// fail ends the watch with an error event.
func (s *stream) fail(err error) {
	frame := s.view.Format.AppendErrorFrame(nil, status.Of(err))
	s.sent.addOne(len(frame))
	s.send(frame)
}

// open tells the client that the watch has begun, though nothing may happen.
func (s *stream) open() {
	if s.socket != nil {
		return // the handshake said so
	}
	s.patience.begin()
	defer s.patience.end()
	s.call.w.WriteHeader(http.StatusOK)
	_ = s.out.Flush()
}

// send writes and flushes, and reports whether the client is there.
func (s *stream) send(data []byte) bool {
	s.patience.begin()
	defer s.patience.end()
	if s.socket != nil {
		return s.socket.send(data)
	}
	if len(data) > 0 {
		if _, err := s.call.w.Write(data); err != nil {
			return false
		}
	}
	return s.out.Flush() == nil
}

// put writes without flushing, and reports whether the client is there.
func (s *stream) put(data []byte) bool {
	if len(data) == 0 {
		return true
	}
	s.patience.begin()
	defer s.patience.end()
	_, err := s.call.w.Write(data)
	return err == nil
}
