package boltkv

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/anykind/anykind/internal/store/journal"
	"github.com/anykind/anykind/internal/store/kv"
)

// Commit implements kv.Backend. A write in the queue waits for its outcome, about one fsync.
func (s *Store) Commit(ctx context.Context, w kv.Write) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if limit := s.options.MaxValueBytes; w.Size() > limit {
		return 0, &kv.TooLargeError{Size: w.Size(), Limit: limit}
	}
	r, ok := s.queue.add(w)
	if !ok {
		return 0, kv.ErrClosed
	}
	<-r.done
	var conflict *kv.ConflictError
	if errors.As(r.err, &conflict) && conflict.Actual.Revision != kv.Absent {
		// Reading the value here costs the committer nothing.
		if actual, err := s.Get(ctx, conflict.Key, conflict.Actual.Revision); err == nil {
			conflict.Actual = actual
		}
	}
	return r.revision, r.err
}

// run is the committer.
func (s *Store) run() {
	last := 0
	for {
		s.gather(last)
		g, closed := s.queue.take()
		last = len(g)
		var err error
		switch broken := s.broken.Load(); {
		case broken != nil:
			err = *broken
		case last > 0:
			err = s.process(g)
		case closed:
			close(s.done)
			return
		default:
			<-s.queue.wake
		}
		if err != nil {
			s.fail(g, err)
			return
		}
	}
}

// gather gives the writers of the last group time for their next write before the next group starts.
// Otherwise the first few would get a frame of their own, and all others would wait for it.
func (s *Store) gather(last int) {
	for i := 0; i < 8 && s.queue.length() < last; i++ {
		runtime.Gosched()
	}
}

// fail closes a store that is no longer trustworthy.
func (s *Store) fail(g group, err error) {
	err = fmt.Errorf("writing to %s: %w", s.space.file.Name(), err)
	s.broken.Store(&err)
	s.shut()
	s.queue.close()
	g.answer(kv.ErrUncertain)
	for closed := false; !closed; {
		var rest group
		rest, closed = s.queue.take()
		rest.answer(kv.ErrClosed)
	}
	s.settler.wake.notify()
	close(s.done)
	if s.options.Fatal == nil {
		panic(err)
	}
	s.options.Fatal(err)
}

// process handles a group. The store does not survive an error.
func (s *Store) process(g group) error {
	s.appending.Lock()
	defer s.appending.Unlock()
	err := s.try(g, everything)
	full := errors.Is(err, kv.ErrFull)
	if full {
		// Writes that free space go first; then writes that need no space follow.
		err = s.try(g, deletions)
	}
	if err != nil && !errors.Is(err, kv.ErrFull) {
		return err
	}
	s.last = time.Now()
	if s.space.full.Swap(full) != full {
		if full {
			s.log.Warn("storage is full, only deletions are accepted", "file", s.space.file.Name())
		} else {
			s.log.Info("storage has space again", "file", s.space.file.Name())
		}
	}
	if err != nil {
		g.answer(kv.ErrFull)
	} else {
		g.tell()
	}
	return nil
}

// part selects writes of a group for an attempt.
type part int

const (
	everything part = iota
	deletions
)

// try does a group, or a part of it: on disk, then in memory. It leaves in every
// request what to answer.
func (s *Store) try(g group, what part) error {
	b := batch{Store: s, what: what, frees: true}
	b.prepare(g)
	if len(b.events) == 0 {
		return nil
	}
	if what == everything && s.journal != nil {
		if done, err := s.append(&b); done || err != nil {
			return err
		}
	}
	return s.fileNow(&b)
}

// append writes a batch to the journal, and reports whether there was room.
func (s *Store) append(b *batch) (done bool, err error) {
	s.mu.RLock()
	pending, filed := s.pending, s.state.newest
	s.mu.RUnlock()
	if err := s.makeRoom(s.space.used.Load(), pending+b.size, false); err != nil {
		if errors.Is(err, kv.ErrFull) {
			err = s.file(filing{}) // it may take less than was estimated
		}
		return false, exceptFull(err)
	}
	frame := journal.Begin(s.buffer)
	for i := range b.events {
		frame = appendFramed(frame, &b.events[i])
	}
	if s.buffer = frame; cap(frame) > 1<<20 {
		s.buffer = nil
	}
	err = s.journal.Append(frame, b.events[0].Revision, b.newest, filed)
	if errors.Is(err, journal.ErrBusy) {
		if err = s.file(filing{}); err == nil {
			err = s.journal.Append(frame, b.events[0].Revision, b.newest, s.newest)
		}
	}
	if err != nil {
		return false, exceptFull(err)
	}
	s.mu.Lock()
	s.show(b.events)
	s.pending += b.size
	s.mu.Unlock()
	if pending+b.size >= s.journalBytes/2 {
		s.settler.wake.notify()
	}
	return true, nil
}

// exceptFull drops an error that means that the disk is full.
func exceptFull(err error) error {
	if errors.Is(err, kv.ErrFull) || isFull(err) {
		return nil
	}
	return err
}

// busyWithin is the time between two groups after which a store is not busy.
const busyWithin = time.Second

// fileNow files a batch at once. In busy times, the journal takes the next one.
func (s *Store) fileNow(b *batch) error {
	f := filing{batch: b}
	var next *journal.Journal
	if s.journal == nil && b.what == everything && time.Since(s.last) < busyWithin {
		var err error
		if next, f.mark, err = s.newJournal(); err != nil {
			return err
		}
		f.marks = next != nil
	}
	if err := s.file(f); err != nil {
		return err
	}
	if next != nil {
		s.journal = next
	}
	s.settler.wake.notify()
	return nil
}

// show makes durable writes visible. It needs mu.
func (s *Store) show(events []kv.Event) {
	for _, e := range events {
		s.index.add(e.Key, newVersion(e.Revision, e.Value == nil))
		s.tail.add(e, s.state.newest)
		s.newest = e.Revision
	}
	s.wake()
}
