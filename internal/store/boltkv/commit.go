package boltkv

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltfile"
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
		last = len(g.writes)
		if g.empty() && closed {
			close(s.done)
			return
		}
		if err := s.turn(&g); err != nil {
			s.fail(&g, err)
			return
		}
	}
}

// turn does a group, or sweeps, or waits. It sweeps also after a group that did
// not do so on the side: writes that all fail must not keep it from freeing the
// space that they wait for.
func (s *Store) turn(g *group) error {
	before, idle := s.state.swept, g.empty()
	if !idle {
		s.paused = false
		if err := s.process(g); err != nil {
			return err
		}
	}
	if s.state.swept == before && before < s.state.oldest && !s.paused {
		return s.sweepAlone()
	}
	if idle {
		<-s.queue.wake
	}
	return nil
}

// gather gives the writers of the last group time for their next write before the next group starts.
// Otherwise the first few would get a transaction of their own, and all others would wait for it.
func (s *Store) gather(last int) {
	for i := 0; i < 8 && s.queue.length() < last; i++ {
		runtime.Gosched()
	}
}

// fail closes a store that is no longer trustworthy.
func (s *Store) fail(g *group, err error) {
	err = fmt.Errorf("writing to %s: %w", s.space.file.Name(), err)
	s.shut()
	s.queue.close()
	g.answer(kv.ErrUncertain, kv.ErrClosed)
	for closed := false; !closed; {
		var rest group
		rest, closed = s.queue.take()
		rest.answer(kv.ErrClosed, kv.ErrClosed)
	}
	close(s.done)
	if s.options.Fatal == nil {
		panic(err)
	}
	s.options.Fatal(err)
}

// answer gives all members of a group an error.
func (g *group) answer(writes, askers error) {
	for _, r := range g.writes {
		r.revision, r.err = 0, writes
	}
	for _, r := range g.askers {
		r.err = askers
	}
	g.tell()
}

// tell releases all members of a group.
func (g *group) tell() {
	for _, r := range append(g.writes, g.askers...) {
		close(r.done)
	}
	*g = group{}
}

// process handles a group, in one transaction if possible. The store does not survive an error.
func (s *Store) process(g *group) error {
	full := false
	err := s.try(g, everything)
	if errors.Is(err, kv.ErrFull) {
		// Writes that free space go first; then writes that need no space follow.
		full = true
		err = s.try(g, deletions)
	}
	if err != nil && !errors.Is(err, kv.ErrFull) {
		return err
	}
	if full != s.space.full {
		s.space.full = full
		if full {
			s.log.Warn("storage is full, only deletions are accepted", "file", s.space.file.Name())
		} else {
			s.log.Info("storage has space again", "file", s.space.file.Name())
		}
	}
	if err != nil {
		g.answer(kv.ErrFull, kv.ErrFull)
	} else {
		g.tell()
	}
	return nil
}

// part selects writes of a group for an attempt.
type part int

const (
	everything part = iota
	deletions       // and no sweeping on the side
)

// try does a group, or a part of it: on disk, then in memory. It leaves in every
// request what to answer.
func (s *Store) try(g *group, what part) error {
	t := transaction{Store: s, state: s.state, what: what}
	err := s.update(func(tx *bolt.Tx) error {
		if err := t.prepare(tx, g); err != nil {
			return err
		}
		if t.empty() {
			return errNothing
		}
		return t.write(tx)
	})
	if err == nil {
		s.publish(&t)
	}
	if errors.Is(err, errNothing) {
		return nil
	}
	return err
}

// errNothing ends a transaction without a commit.
var errNothing = errors.New("nothing to write")

// update runs one bbolt transaction. Its error is that of fn; kv.ErrFull, with nothing written; or one
// after which the store is not trustworthy.
func (s *Store) update(fn func(*bolt.Tx) error) (err error) {
	var tx *bolt.Tx
	defer func() {
		if tx != nil && tx.DB() != nil {
			_ = tx.Rollback()
		}
	}()
	defer boltfile.RecoverDamage(s.space.file.Name(), &err)()
	if tx, err = s.db.Begin(true); err != nil {
		return err
	}
	if err := fn(tx); err != nil {
		return err
	}
	err = s.commit(tx)
	if isFullWrite(err) {
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return err
}

// publish makes durable writes visible.
func (s *Store) publish(t *transaction) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sw := range t.swept {
		s.index.forget(sw.key, sw.revision)
	}
	for _, e := range t.events {
		s.index.add(e.Key, newVersion(e.Revision, e.Value == nil))
		s.tail.add(e)
		s.space.recent.add(recordSize(&e))
		s.noted = s.noted || e.Note != nil
	}
	s.state = t.state
	if len(t.events) > 0 {
		s.wake()
	}
}
