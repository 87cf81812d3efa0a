package envtest

import (
	"context"
	"net/http"
	"sync"

	"github.com/anykind/anykind/internal/app"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/store/kv"
)

// hooks are the functions by which an Environment observes its server and injects faults.
func (s *server) hooks() app.Hooks {
	return app.Hooks{
		Answer: s.answering, Request: s.observeRequest, Webhook: callWebhook,
		Store: func(b kv.Backend) kv.Backend {
			s.stored = b
			return &store{b, s}
		},
	}
}

// observeRequest observes every request.
func (s *server) observeRequest(r *http.Request, q *request.Request) (answered func(int)) {
	if q.Info.IsLongRunning() {
		return func(code int) { s.recorders.answered(r, q, code) }
	}
	s.underWay.Add(1)
	return func(code int) {
		s.recorders.answered(r, q, code)
		if !q.Info.IsReadOnly() {
			s.writes.Add(1)
		}
		s.underWay.Add(-1)
	}
}

// answering injects faults, and tracks watches.
func (s *server) answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := request.From(r.Context())
		answer := next
		effect := s.faults.Take(q)
		if effect != nil {
			answer = effect(next)
		}
		if q.Info.IsWatch() {
			if effect == nil {
				s.recorders.watched(r, q)
			}
			ctx, done := s.watches.add(r.Context(), q)
			defer done()
			r = r.WithContext(ctx)
		}
		answer.ServeHTTP(w, r)
	})
}

// watches are the open watches.
type watches struct {
	mu  sync.Mutex
	all map[*request.Request]context.CancelFunc
}

func (w *watches) add(ctx context.Context, q *request.Request) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[*request.Request]context.CancelFunc{}
	}
	w.all[q] = cancel
	return ctx, func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.all, q)
	}
}

// EndWatches ends the open watches among the requests, as a server does at their timeout, and returns
// their number. Clients resume at their last resourceVersion. To reject that, inject Expired for the
// verb watch before.
func (te *Environment) EndWatches(of Requests) int {
	if te.server == nil {
		return 0
	}
	w := &te.server.watches
	w.mu.Lock()
	defer w.mu.Unlock()
	ended := 0
	for q, cancel := range w.all {
		if of.match(q) {
			cancel()
			ended++
		}
	}
	return ended
}

// store wraps the store of a server. It fails for requests with FailStore, and reports changes to
// transcripts and observers.
type store struct {
	kv.Backend
	server *server
}

// Unwrap lets kv.As find the wrapped store.
func (s *store) Unwrap() kv.Backend { return s.Backend }

// Get implements kv.Backend.
func (s *store) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	if failingOf(ctx).store {
		return kv.Record{}, kv.ErrUnavailable
	}
	return s.Backend.Get(ctx, key, revision)
}

// List implements kv.Backend.
func (s *store) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	if failingOf(ctx).store {
		return kv.Page{}, kv.ErrUnavailable
	}
	return s.Backend.List(ctx, r)
}

// Revision implements kv.Backend.
func (s *store) Revision(ctx context.Context) (int64, error) {
	if failingOf(ctx).store {
		return 0, kv.ErrUnavailable
	}
	return s.Backend.Revision(ctx)
}

// Commit implements kv.Backend.
func (s *store) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if failingOf(ctx).store {
		return 0, kv.ErrUnavailable
	}
	q := request.From(ctx)
	recorded := q != nil && s.server.recorders.record(q)
	observed := !s.server.observers.none()
	if !recorded && !observed {
		return s.Backend.Commit(ctx, w)
	}
	before := s.before(ctx, &w)
	revision, err := s.Backend.Commit(ctx, w)
	if err != nil {
		return revision, err
	}
	if recorded {
		s.server.recorders.changed(q, change{key: w.Key, before: before[w.Key].Value, after: w.Value})
	}
	if observed {
		s.server.observers.committed(ctx, &w, before, revision)
	}
	return revision, nil
}

// before returns the records that a write replaces if it succeeds.
func (s *store) before(ctx context.Context, w *kv.Write) map[string]kv.Record {
	all := map[string]kv.Record{}
	for c := range w.All() {
		if c.Expect == kv.Absent {
			continue
		}
		// The state of that revision may be compacted.
		if r, err := s.Backend.Get(ctx, c.Key, kv.Latest); err == nil && r.Revision == c.Expect {
			all[c.Key] = r
		}
	}
	return all
}
