package etcdkv

import (
	"context"
	"errors"
	"iter"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/anykind/anykind/internal/store/kv"
)

// The time that a watch waits for a certain event before it requests progress, and for the response
// before the next request.
const (
	minAsk = 10 * time.Millisecond
	maxAsk = 100 * time.Millisecond
)

// A watch is the state of one range over a sequence.
type watch struct {
	store     *Store
	caller    context.Context
	ctx       context.Context // of the watch of etcd
	seen      int64
	unread    *kv.Queue
	wanted    atomic.Int64 // newest known revision
	requested atomic.Int64 // newest revision for which a reader waits
	kicked    chan struct{}
	ask       *time.Timer
	wait      time.Duration

	pending bool // ask is running

	begun atomic.Bool // etcd has said that it watches
}

// Watch implements kv.Backend.
func (s *Store) Watch(ctx context.Context, prefix string, after int64) iter.Seq2[kv.Batch, error] {
	return func(yield func(kv.Batch, error) bool) {
		if err := s.watch(ctx, prefix, after, yield); err != nil {
			yield(kv.Batch{}, err)
		}
	}
}

// watch returns nil when the consumer has left.
func (s *Store) watch(caller context.Context, prefix string, after int64, yield func(kv.Batch, error) bool) error {
	// A read tells whether the revision is compacted, and the latest revision. etcd would wait for a
	// future one.
	resp, err := s.get(caller, s.options.Prefix, after, clientv3.WithCountOnly())
	if err != nil {
		return err
	}
	if after == kv.Latest {
		after = resp.Header.Revision
	}
	w := &watch{
		store: s, caller: caller, seen: after,
		kicked: make(chan struct{}, 1), ask: time.NewTimer(time.Hour), unread: kv.NewQueue(),
	}
	defer w.ask.Stop()
	slot := s.add(w)
	defer s.remove(slot)
	var receiving sync.WaitGroup
	defer receiving.Wait()
	ctx, cancel := context.WithCancel(caller)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	w.wanted.Store(s.newest.Load())
	w.ctx = clientv3.WithRequireLeader(metadata.AppendToOutgoingContext(ctx, slotHeader, strconv.Itoa(slot)))
	from := s.External(prefix)
	receiving.Go(func() {
		events := s.client.Watch(w.ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(from)),
			clientv3.WithRev(after+1), clientv3.WithPrevKV(), clientv3.WithFragment(),
			clientv3.WithProgressNotify(), clientv3.WithCreatedNotify())
		w.unread.End(w.receive(events))
	})
	for {
		batch, err := w.unread.Take(caller)
		if err != nil {
			return err
		}
		if s.ctx.Err() != nil {
			return kv.ErrClosed
		}
		if !yield(batch, nil) {
			return nil
		}
	}
}

// receive queues the responses of etcd for the consumer, and requests missing progress. It never waits
// for the consumer. Its stream does, before it receives more from etcd.
func (w *watch) receive(responses clientv3.WatchChan) error {
	w.schedule(minAsk)
	for {
		select {
		case resp, ok := <-responses:
			if !ok {
				return w.ended(nil)
			}
			batch, err := w.batch(resp)
			if err != nil {
				return err
			}
			if resp.Created {
				w.begun.Store(true)
			}
			if batch.Revision > w.seen || resp.Created {
				w.unread.Put(batch)
			}
			if batch.Revision > w.seen {
				w.seen = batch.Revision
				w.store.saw(w.seen)
				w.schedule(minAsk)
			}
		case <-w.kicked:
			if w.requested.Load() > w.seen {
				w.requestProgress()
			}
			// Another write must not postpone a scheduled request.
			if !w.pending {
				w.schedule(minAsk)
			}
		case <-w.ask.C:
			w.requestProgress()
			w.schedule(min(2*w.wait, maxAsk))
		case <-w.store.where.restored:
			return w.store.where.err()
		}
	}
}

// schedule schedules a progress request if one is needed.
func (w *watch) schedule(wait time.Duration) {
	w.wait = wait
	w.pending = max(w.wanted.Load(), w.requested.Load()) > w.seen
	if w.pending {
		w.ask.Reset(wait)
	} else {
		w.ask.Stop()
	}
}

// requestProgress requests the progress of the watch. It waits while there is no connection.
func (w *watch) requestProgress() {
	_ = w.store.client.RequestProgress(w.ctx) // the responses end if it fails
}

// ended returns the reason for the end of the responses.
func (w *watch) ended(err error) error {
	switch {
	case w.store.ctx.Err() != nil:
		return kv.ErrClosed
	case w.caller.Err() != nil:
		return w.caller.Err()
	case err == nil:
		err = errors.New("the watch was cancelled")
	}
	return unavailable(err)
}

// batch translates what etcd sent.
func (w *watch) batch(resp clientv3.WatchResponse) (kv.Batch, error) {
	if err := resp.Err(); err != nil {
		if resp.CompactRevision != 0 {
			return kv.Batch{}, &kv.CompactedError{Asked: w.seen, Oldest: resp.CompactRevision}
		}
		if errors.Is(err, rpctypes.ErrCompacted) {
			return kv.Batch{}, w.store.compacted(w.caller, w.seen)
		}
		return kv.Batch{}, w.ended(err)
	}
	batch := kv.Batch{Revision: w.seen}
	if resp.IsProgressNotify() {
		batch.Revision = max(w.seen, resp.Header.Revision)
	}
	for _, e := range resp.Events {
		event := kv.Event{Key: w.store.inside(e.Kv.Key), Revision: e.Kv.ModRevision}
		if e.Type == clientv3.EventTypePut {
			event.Value = value(e.Kv.Value)
		}
		switch {
		case e.PrevKv != nil:
			event.Prev, event.PrevRevision = value(e.PrevKv.Value), e.PrevKv.ModRevision
		case !e.IsCreate():
			// Earlier events are compacted.
			return kv.Batch{}, w.store.compacted(w.caller, w.seen)
		}
		batch.Events = append(batch.Events, event)
		batch.Revision = e.Kv.ModRevision
	}
	return batch, nil
}

// add assigns the first free slot to a watch.
func (s *Store) add(w *watch) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.watches {
		if s.watches[i] == nil {
			s.watches[i] = w
			return i
		}
	}
	s.watches = append(s.watches, w)
	return len(s.watches) - 1
}

func (s *Store) remove(slot int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watches[slot] = nil
}

// expect informs the watches of a new revision.
func (s *Store) expect(revision int64) {
	s.each(func(w *watch) { raise(&w.wanted, revision) })
}

// hurry requests the progress of the watches up to a revision for which a reader waits.
func (s *Store) hurry(revision int64) {
	s.each(func(w *watch) { raise(&w.requested, revision) })
}

func (s *Store) each(tell func(*watch)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.watches {
		if w == nil {
			continue
		}
		tell(w)
		select {
		case w.kicked <- struct{}{}:
		default:
		}
	}
}

// raise raises a number to a minimum.
func raise(n *atomic.Int64, to int64) {
	for {
		old := n.Load()
		if to <= old || n.CompareAndSwap(old, to) {
			return
		}
	}
}
