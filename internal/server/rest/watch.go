package rest

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	netsocket "github.com/anykind/anykind/internal/network/socket"
	"github.com/anykind/anykind/internal/object/codec"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// lastBookmark is the time of the last bookmark before the end of a watch. It lets the client
// resume from a recent revision.
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
	if r.turnsOn("history") {
		return status.BadRequest("history and watch are mutually exclusive: watch from a resourceVersion, or with asOf")
	}
	if err := h.asOf(r, &o, ""); err != nil {
		return err
	}
	wantsInitial := o.SendInitialEvents != nil && *o.SendInitialEvents
	if o.Watch { // the deprecated watch paths do not set it
		initial := h.options.Gates.On(gate.WatchList)
		if initial {
			askInitialEvents(&o)
		}
		err = invalidList(&o, validateWatch(&o, initial))
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
	d, shard := r.target.Definition, h.shardSelector(&o)
	watch, refused := h.registry.Watch(ctx, r.target, registry.WatchOptions{
		Selection:         selection,
		Shard:             shard,
		Missed:            h.shards.miss(d, shard),
		ResourceVersion:   o.ResourceVersion,
		SendInitialEvents: o.SendInitialEvents,
		Allow:             h.allow,
	})
	if refused == nil {
		defer watch.Close()
		defer h.shards.begin(d, shard)()
	} else if !saysInStream(refused) {
		return refused
	}
	if err := r.fits(view, codec.Watch); err != nil {
		return err
	}
	zipped := h.zipped(r, wantsInitial && refused == nil)
	defer zipped.close()
	now := time.Now()
	s := &stream{
		handler: h, call: r, view: view, zipped: zipped, sent: h.sent.of(d, r.target.Version.Name), watch: watch,
		out:           http.NewResponseController(r.w),
		writeDeadline: writeDeadline{out: http.NewResponseController(r.w)},
		bookmarks:     o.AllowWatchBookmarks,
		end:           now.Add(h.lifetime(o.TimeoutSeconds)),
		forget:        func() {},
	}
	if from, err := registry.ParseRevision(o.ResourceVersion); err == nil && h.allow != nil && from > 0 && from < h.registry.Recent() {
		s.hidden = h.hidden(r)
	}
	s.scheduleBookmark(now)
	if key, alike := view.Key(); alike {
		s.together = s.key(key, "")
	}
	s.initialEnd = o.AllowWatchBookmarks && o.SendInitialEvents != nil && *o.SendInitialEvents
	if netsocket.Wanted(r.Request) {
		s.overSocket(ctx, refused)
		return nil
	}
	r.w.Header().Set("Content-Type", view.Format.StreamContentType())
	s.tell(ctx, refused)
	return nil
}

// tell runs the watch, or sends the error that refused it.
func (s *stream) tell(ctx context.Context, refused error) {
	defer s.writeDeadline.stop()
	if refused != nil {
		s.fail(refused)
		return
	}
	s.open()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := s.call.target.Definition
	s.retired = s.handler.catalog.Retired(d)
	defer s.handler.catalog.OnRetired(d, cancel)()
	defer func() { s.forget() }()
	s.run(ctx)
}

// askInitialEvents turns a watch that starts with the current state into one with
// sendInitialEvents. The stream then knows where the initial events end.
func askInitialEvents(o *metav1.ListOptions) {
	begins := o.ResourceVersion == "" || o.ResourceVersion == "0"
	if begins && o.SendInitialEvents == nil && o.ResourceVersionMatch == "" {
		o.SendInitialEvents, o.ResourceVersionMatch = &begins, metav1.ResourceVersionMatchNotOlderThan
	}
}

// saysInStream reports whether a watch reports an error as an event: an expired or a future
// revision.
func saysInStream(err error) bool {
	return status.Is(err, metav1.StatusReasonExpired) || status.Is(err, metav1.StatusReasonTimeout)
}

// lifetime returns the duration of a watch. Without timeoutSeconds it is random, so that watches
// do not reconnect all at once.
func (h *Handler) lifetime(seconds *int64) time.Duration {
	if seconds != nil && *seconds != 0 {
		return time.Duration(*seconds) * time.Second
	}
	return h.options.MinWatch + rand.N(h.options.MinWatch)
}

// A stream is one watch being sent to its client.
type stream struct {
	handler *Handler
	call    *call
	view    *codec.View
	sent    *sent
	watch   *registry.Watch
	out     *http.ResponseController
	socket  *socket      // nil for a watch over the body of an answer
	zipped  *zippedWatch // nil for an answer that is not compressed

	writeDeadline writeDeadline
	bookmarks     bool
	bookmark      time.Time // time of the next one
	initialEnd    bool      // the bookmark after the initial events is due
	end           time.Time
	written       bool
	retired       <-chan struct{} // closed when the Definition is
	together      any             // key of frames that watches share, nil if they are only for this watch
	hidden        hidden          // zero for a watch that has come to recent states

	// wait ends at until, the time of the next bookmark or the end.
	wait   context.Context
	until  time.Time
	forget context.CancelFunc
}

// run writes events until the watch ends or times out. Bookmarks and the end are on time even if
// events never pause.
func (s *stream) run(ctx context.Context) {
	ended := false
	for {
		if !s.watch.Initial() {
			request.From(ctx).Release()
			if !s.initialEnd {
				s.zipped.live()
			}
		}
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
			ended = true // there may be an event from just before
			continue
		case ctx.Err() != nil, errors.Is(err, registry.ErrEnded):
			return
		case errors.Is(err, context.DeadlineExceeded):
			continue
		default:
			s.fail(err)
			return
		}
		portion, denied := s.visible(ctx, portion)
		if !s.current() || !s.write(ctx, portion) {
			return
		}
		if denied != nil {
			s.fail(denied)
			return
		}
	}
}

// visible returns the events of a portion until the first one that the user may not see, and its error.
func (s *stream) visible(ctx context.Context, p registry.Portion) (registry.Portion, error) {
	if s.hidden.rights == nil {
		return p, nil
	}
	for i, e := range p.Events {
		if err := s.hidden.err(ctx, e.Revision); err != nil {
			return registry.Portion{Events: p.Events[:i]}, err
		}
		if e.Revision >= s.hidden.recent {
			s.hidden = hidden{}
			break
		}
	}
	return p, nil
}

// bookmarkDue reports whether a bookmark is due. The one that ends the initial events follows
// them immediately.
func (s *stream) bookmarkDue(now time.Time) bool {
	if s.initialEnd {
		return !s.watch.Initial()
	}
	return s.bookmarks && !now.Before(s.bookmark)
}

// wake returns the time of the next bookmark, or of the end.
func (s *stream) wake() time.Time {
	if s.bookmarks && s.bookmark.Before(s.end) {
		return s.bookmark
	}
	return s.end
}

// waiting returns a context that ends at wake. It is reused until then.
func (s *stream) waiting(ctx context.Context) context.Context {
	if wake := s.wake(); !wake.Equal(s.until) {
		s.forget()
		s.until = wake
		s.wait, s.forget = context.WithDeadline(ctx, wake)
	}
	return s.wait
}

// current reports whether the watch uses the current Definition. After a change of the Definition
// the watch ends, as in Kubernetes: its client reconnects and gets objects by the new one. After
// the removal of the resource, the watch still sends the events of its last objects.
func (s *stream) current() bool {
	d := s.call.target.Definition
	select {
	case <-s.retired:
		return s.handler.catalog.Set().Lookup(d.Group, d.Plural) == nil
	default:
		return true
	}
}

// frameKey identifies the bytes of an event in one view.
type frameKey struct {
	of      any // the identity of the Definition
	version string
	view    codec.Key
	event   string // "" for a portion
}

func (s *stream) key(view codec.Key, event string) frameKey {
	target := &s.call.target
	return frameKey{target.Definition.Identity(), target.Version.Name, view, event}
}

// writeChunk is the size of the buffer for events. A longer event is written directly.
const writeChunk = 32 << 10

// A chunk is such a buffer. A watch has it only during a write.
type chunk [writeChunk]byte

// write writes events, and reports whether the watch goes on.
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
		validity := s.handler.registry.Validity(ctx, d)
		frames, err := p.Shared.Memo(s.together, validity, func() ([]byte, error) { return s.frames(ctx, p.Events) })
		if err == nil {
			s.written = true
			return s.send(s.sent.cutSizes(frames, len(p.Events)))
		}
		// writeEach sends the events before the failed one.
	}
	return s.writeEach(ctx, p.Events)
}

// frames returns the bytes of events, concatenated. Behind several events follow their sizes.
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

// writeEach writes events that no other watch shares. Whatever their number, a watch whose client
// does not read holds one chunk.
func (s *stream) writeEach(ctx context.Context, events []registry.WatchEvent) bool {
	s.warm(ctx, events)
	chunks := &s.handler.chunks
	space, ok := chunks.Get().(*chunk)
	if !ok {
		space = new(chunk)
	}
	if !s.writeThrough(ctx, space, events) {
		return false // net/http may still use the chunk
	}
	chunks.Put(space)
	return true
}

func (s *stream) writeThrough(ctx context.Context, space *chunk, events []registry.WatchEvent) bool {
	buf := space[:0]
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
		s.sent.add(len(frame))
		s.written = true
	}
	return s.send(buf)
}

// warm converts the objects of events in one batch, if they need conversion.
func (s *stream) warm(ctx context.Context, events []registry.WatchEvent) {
	target := &s.call.target
	if target.Definition.Convert == nil || len(events) < 2 {
		return
	}
	objects := make([]*watchcache.Object, len(events))
	for i := range events {
		objects[i] = events[i].Object
	}
	// The first event with an error reports it again.
	_ = s.handler.registry.Warm(ctx, target.Definition, target.Version, slices.Values(objects))
}

// frame returns the bytes of an event. They are encoded once for all watches with the same view.
func (s *stream) frame(ctx context.Context, e registry.WatchEvent) ([]byte, error) {
	target := &s.call.target
	make := func() ([]byte, error) {
		shown, err := s.handler.registry.ViewAt(ctx, target.Definition, target.Version, e)
		if err != nil {
			return nil, err
		}
		cells := s.handler.part(ctx, target, s.view, &e.Object)
		return s.view.AppendFrame(nil, string(e.Type), &shown, cells, !s.written)
	}
	key, shared := s.view.Key()
	if !shared {
		return make()
	}
	return e.Shared.Memo(s.key(key, string(e.Type)), s.handler.registry.Validity(ctx, target.Definition), make)
}

// scheduleBookmark computes the time of the next bookmark.
func (s *stream) scheduleBookmark(now time.Time) {
	s.bookmark = now.Add(s.handler.options.BookmarkEvery)
	if last := s.end.Add(-lastBookmark); last.After(now) && last.Before(s.bookmark) {
		s.bookmark = last
	}
}

// writeBookmark writes a bookmark if the revision advanced.
func (s *stream) writeBookmark() bool {
	s.scheduleBookmark(time.Now())
	revision := s.watch.Progress()
	if revision == 0 {
		return true
	}
	bookmark := s.view.AppendBookmark(nil, revision, s.initialEnd, !s.written)
	s.initialEnd, s.written = false, true
	s.sent.add(len(bookmark))
	return s.send(bookmark)
}

// fail ends the watch with an error event.
func (s *stream) fail(err error) {
	frame := s.view.Format.AppendErrorFrame(nil, status.Of(err))
	s.sent.add(len(frame))
	s.send(frame)
}

// open sends the headers before the first event.
func (s *stream) open() {
	if s.socket != nil {
		return // the handshake has sent them
	}
	s.writeDeadline.begin()
	defer s.writeDeadline.end()
	s.call.w.WriteHeader(http.StatusOK)
	_ = s.out.Flush()
}

// send writes and flushes, and reports whether the client is connected.
func (s *stream) send(data []byte) bool {
	s.writeDeadline.begin()
	defer s.writeDeadline.end()
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

// put writes without flushing, and reports whether the client is connected.
func (s *stream) put(data []byte) bool {
	if len(data) == 0 {
		return true
	}
	s.writeDeadline.begin()
	defer s.writeDeadline.end()
	_, err := s.call.w.Write(data)
	return err == nil
}
