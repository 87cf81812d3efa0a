package boltkv

import (
	"errors"
	"sync"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

const (
	// journalBytes is the length of each of the two files of a journal. Records of half of it are filed without delay.
	journalBytes = 8 << 20
	// settleAfter is the time after which records are filed in any case. A store without a write for this time is at rest.
	settleAfter = 10 * time.Second
)

// settler is the work of the goroutine that files what is in the journal, and compacts.
type settler struct {
	wake signal
	done chan struct{} // closed when it has ended
	full bool          // its last filing found no space

	mu     sync.Mutex
	oldest int64 // the highest requested revision of a compaction
	askers group // that wait for it
	closed bool
}

// compact requests a compaction, and waits until its revision is on the disk.
func (w *settler) compact(revision int64) error {
	r := &request{done: make(chan struct{})}
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return kv.ErrClosed
	}
	w.oldest = max(w.oldest, revision)
	w.askers = append(w.askers, r)
	w.wake.notify()
	w.mu.Unlock()
	<-r.done
	return r.err
}

// take returns the requested compaction, and whether the settler ends.
func (w *settler) take() (oldest int64, askers group, closed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	oldest, askers, closed = w.oldest, w.askers, w.closed
	w.oldest, w.askers = 0, nil
	return oldest, askers, closed
}

// stop ends the settler.
func (w *settler) stop() {
	w.mu.Lock()
	w.closed = true
	w.wake.notify()
	w.mu.Unlock()
	<-w.done
}

// settle is the settler.
func (s *Store) settle() {
	w := &s.settler
	defer close(w.done)
	tick := time.NewTimer(settleAfter)
	defer tick.Stop()
	seen, more, armed := int64(0), false, true
	for {
		due := false
		if !more {
			select {
			case <-w.wake:
			case <-tick.C:
				due, armed = true, false
			}
		}
		oldest, askers, closed := w.take()
		if closed {
			askers.answer(kv.ErrClosed)
			return
		}
		var err error
		more, err = s.settleOnce(oldest, due, &seen)
		askers.answer(err)
		if !armed && s.mark.Load() != 0 {
			tick.Reset(settleAfter)
			armed = true
		}
	}
}

// settleOnce does the next filing if there is a reason, and reports whether there is more to do. When it is due, seen is the
// newest write at that time and then the present one.
// Errors: kv.ErrFull, kv.ErrClosed.
func (s *Store) settleOnce(oldest int64, due bool, seen *int64) (more bool, err error) {
	if s.broken.Load() != nil {
		return false, kv.ErrClosed
	}
	s.mu.RLock()
	now, newest, pending := s.state, s.newest, s.pending
	s.mu.RUnlock()
	f := filing{oldest: oldest, budget: sweepAtOnce + 2*int(newest-now.newest)}
	if s.space.full.Load() {
		f.budget = sweepAtOnce / 16
	}
	switch {
	case due && newest == *seen:
		err = s.rest()
	case due && pending > 0, pending >= s.journalBytes/2, oldest > now.oldest, now.swept < now.oldest:
		err = s.file(f)
	}
	if due {
		*seen = newest
	}
	was := s.settler.full
	s.settler.full = errors.Is(err, kv.ErrFull)
	switch {
	case s.settler.full:
		if !was {
			s.log.Warn("storage is too full to free space in it", "file", s.space.file.Name(), "error", err)
		}
		return false, kv.ErrFull // the next write or compaction wakes it up
	case err != nil:
		s.broken.CompareAndSwap(nil, &err)
		s.queue.wake.notify()
		return false, kv.ErrClosed
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.state.swept < s.state.oldest, nil
}

// rest ends the use of the journal until the store is busy again.
func (s *Store) rest() error {
	s.appending.Lock()
	defer s.appending.Unlock()
	return s.endJournal()
}

// endJournal files everything, so that the file needs no journal. It needs appending.
func (s *Store) endJournal() error {
	if s.mark.Load() == 0 {
		return nil
	}
	if err := s.file(filing{marks: true}); err != nil {
		return err
	}
	s.journal = nil
	return nil
}
