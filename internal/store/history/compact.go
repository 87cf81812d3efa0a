package history

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// trimEvents is the number of events whose leftovers a transaction removes.
const trimEvents = 4096

// Compact implements kv.Backend.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	newest, err := s.below.Revision(ctx)
	if err != nil {
		return err
	}
	if revision > newest {
		return &kv.FutureError{Asked: revision, Newest: newest}
	}
	if revision <= s.now().oldest { // kv.Latest, too
		return nil
	}
	if err := s.wait(ctx); err != nil {
		return err
	}
	return s.compact(ctx, revision)
}

// compact drops the states before a revision, and then what only they need.
func (s *Store) compact(ctx context.Context, revision int64) error {
	if revision = s.kept.Compact(revision); revision <= s.now().oldest {
		return nil
	}
	if err := (settled{s}).Compact(ctx, revision); err != nil {
		return err
	}
	s.turn.Lock()
	defer s.turn.Unlock()
	for more := true; more; {
		err := s.file.update(ctx, func(r *reading) (err error) {
			if revision > r.state.oldest {
				if r.state.began, err = r.timeOf(revision); err != nil {
					return err
				}
				r.state.oldest = revision
			}
			more, err = r.trim()
			return err
		})
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.oldest = max(s.oldest, revision)
		s.mu.Unlock()
	}
	return nil
}

// trim removes the leftovers of the next events that are older than the kept states, and reports whether there are more.
func (r *reading) trim() (more bool, err error) {
	oldest, seen := r.state.oldest, map[int64]bool{}
	var blocks [][]byte
	c := r.log.Cursor()
	for k, v := c.First(); k != nil; k, v = c.Next() {
		entries, err := r.block(k, v)
		if err != nil {
			return false, err
		}
		last := entries[len(entries)-1].revision
		for _, e := range entries {
			if e.revision > r.state.trimmed && e.revision <= oldest {
				seen[e.id] = true
			}
		}
		if last >= oldest {
			r.state.trimmed = oldest
			break
		}
		blocks = append(blocks, bytes.Clone(k))
		if r.state.trimmed = max(r.state.trimmed, last); len(seen) >= trimEvents {
			more = true
			break
		}
	}
	for _, k := range blocks {
		if err := r.log.Delete(k); err != nil {
			return false, err
		}
	}
	for id := range seen {
		if err := r.trimKey(number(id), oldest); err != nil {
			return false, err
		}
	}
	return more, nil
}

// trimKey removes the runs of a key that no kept state needs. If the last version is old, the backend has
// it, too, or it is a deletion.
func (r *reading) trimKey(id []byte, oldest int64) error {
	var drop [][]byte
	c := r.runs.Cursor()
	k, v := c.Seek(id)
	for bytes.HasPrefix(k, id) {
		this, value := bytes.Clone(k), v
		k, v = c.Next()
		if bytes.HasPrefix(k, id) {
			if firstOf(k) > oldest {
				return r.remove(id, drop, false)
			}
		} else {
			// A damaged run stays.
			last, err := r.decode(string(r.names.Get(id)), this, value)
			if err != nil || last.newest().revision > oldest {
				return r.remove(id, drop, false)
			}
		}
		drop = append(drop, this)
	}
	return r.remove(id, drop, true)
}

// remove removes runs of a key, and the key itself.
func (r *reading) remove(id []byte, runs [][]byte, key bool) error {
	for _, k := range runs {
		if err := r.runs.Delete(k); err != nil {
			return err
		}
	}
	name := r.names.Get(id)
	if !key || name == nil {
		return nil
	}
	if err := r.keys.Delete(bytes.Clone(name)); err != nil {
		return err
	}
	return r.names.Delete(id)
}

// retain drops states that are older than wanted, and the oldest ones of a file that is too large.
func (s *Store) retain(ctx context.Context) {
	if s.options.Keep == 0 && s.options.MaxBytes == 0 {
		return
	}
	every := time.Minute
	if keep := s.options.Keep; keep > 0 {
		every = min(every, max(keep/100, 10*time.Millisecond))
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := s.expire(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, kv.ErrClosed) {
			s.log.Warn("old states could not be dropped", "file", s.file.path, "error", err)
		}
	}
}

func (s *Store) expire(ctx context.Context) error {
	if s.options.Keep > 0 {
		revision, err := s.At(ctx, s.options.Now().Add(-s.options.Keep))
		var early *kv.TooEarlyError
		switch {
		case errors.As(err, &early):
		case err != nil:
			return err
		case revision > s.now().oldest: // nothing is written for an idle store
			if err := s.compact(ctx, revision); err != nil {
				return err
			}
		}
	}
	for s.options.MaxBytes > 0 && s.file.used() > s.options.MaxBytes {
		if err := s.drop(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drop drops the oldest sixteenth of the states in the file.
func (s *Store) drop(ctx context.Context) error {
	now := s.now()
	oldest, archived := now.oldest, now.archived
	if oldest >= s.kept.Compact(archived) { // nothing to drop, or the states are kept
		return kv.ErrFull
	}
	s.log.Warn("the oldest states of the history are dropped: the file is too large", "file", s.file.path, "from", oldest)
	return s.compact(ctx, min(archived, oldest+(archived-oldest)/16+1))
}

// used returns the bytes of the file that have content.
func (f *file) used() int64 {
	stats := f.db.Stats()
	free := int64(stats.FreePageN+stats.PendingPageN) * int64(f.db.Info().PageSize)
	return f.size() - free
}
