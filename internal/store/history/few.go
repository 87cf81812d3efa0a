package history

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"sort"

	"github.com/anykind/anykind/internal/store/kv"
)

// Limits of a prefix whose changes are read by key.
const (
	fewKeys    = 1024
	fewChanges = 16 << 10
)

// inRuns is the source of the keys with a prefix, if they and their changes after a revision are few; otherwise nil. It
// reads the runs of these keys, and not the log of all keys.
func (s *Store) inRuns(ctx context.Context, prefix string, after int64) (source, error) {
	var all []entry
	var until int64
	few := false
	err := s.file.view(ctx, func(r *reading) (err error) {
		all, few, err = r.changesOf(prefix, after, s.options.few)
		until = r.state.archived
		return err
	})
	var damage *kv.CorruptError
	if errors.As(err, &damage) {
		return nil, nil // the log has the changes before the damage
	}
	if err != nil || !few {
		return nil, err
	}
	sort.SliceStable(all, func(i, k int) bool { return all[i].revision < all[k].revision })
	return func(_ *reading, after int64) (iter.Seq2[entry, error], int64) {
		return func(yield func(entry, error) bool) {
			for _, e := range all[sort.Search(len(all), func(i int) bool { return all[i].revision > after }):] {
				if !yield(e, nil) {
					return
				}
			}
		}, until
	}, nil
}

// changesOf returns the changes of the keys with a prefix after a revision, in the order of the keys. few is false if there
// are too many keys or changes.
func (r *reading) changesOf(prefix string, after int64, most int) (all []entry, few bool, err error) {
	keys, c := 0, r.keys.Cursor()
	for key, id := c.Seek([]byte(prefix)); bytes.HasPrefix(key, []byte(prefix)); key, id = c.Next() {
		if keys++; keys > most {
			return nil, false, nil
		}
		if all, err = r.appendChanges(all, string(key), id, after); err != nil || len(all) > fewChanges {
			return nil, false, err
		}
	}
	return all, true, r.ctx.Err()
}

// appendChanges appends the changes of a key after a revision.
func (r *reading) appendChanges(all []entry, key string, id []byte, after int64) ([]entry, error) {
	c := r.runs.Cursor()
	k, v := before(c, runKey(id, after+1))
	if !bytes.HasPrefix(k, id) {
		k, v = c.Seek(id)
	}
	for ; bytes.HasPrefix(k, id) && len(all) <= fewChanges; k, v = c.Next() {
		found, err := r.decode(key, k, v)
		if err != nil {
			return nil, err
		}
		for i := len(found.versions) - 1; i >= 0; i-- {
			if one := &found.versions[i]; one.revision > after && one.kind != first {
				all = append(all, entry{revision: one.revision, id: firstOf(id), time: one.time, key: key})
			}
		}
	}
	return all, nil
}
