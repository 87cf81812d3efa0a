package memkv

import (
	"context"
	"errors"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// List implements kv.Backend.
func (s *Store) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	if err := ctx.Err(); err != nil {
		return kv.Page{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	revision, err := s.resolve(r.Revision)
	if err != nil {
		return kv.Page{}, err
	}
	page := kv.Page{Revision: revision}
	add := func(record kv.Record) bool {
		if page.More = r.Limit > 0 && len(page.Records) == r.Limit; page.More {
			return false
		}
		page.Records = append(page.Records, record)
		return true
	}
	err = s.each(ctx, r, revision, add)
	return page, err
}

// each yields the records of a range until yield returns false. It needs mu.
func (s *Store) each(ctx context.Context, r kv.Range, revision int64, yield func(kv.Record) bool) error {
	if s.options.Over == nil {
		s.written(r, revision, "", func(key string, v version) bool {
			return v.value == nil || yield(kv.Record{Key: key, Value: v.value, Revision: v.revision})
		})
		return nil
	}
	if r.Limit > 0 {
		r.Limit++ // one more record tells whether there are more
	}
	for more := true; more; {
		page, err := s.options.Over.List(ctx, r)
		if err != nil {
			return err
		}
		last := ""
		if more = page.More; more {
			last = page.Records[len(page.Records)-1].Key
		}
		if !s.merge(r, revision, page.Records, last, yield) {
			return nil
		}
		r.After = last
	}
	return nil
}

// merge yields the records of a state with the written keys of the range over them, up to the key last, or to
// the end for "". It returns the last result of yield.
func (s *Store) merge(r kv.Range, revision int64, under []kv.Record, last string, yield func(kv.Record) bool) bool {
	ok := true
	s.written(r, revision, last, func(key string, v version) bool {
		for ; ok && len(under) > 0 && under[0].Key < key; under = under[1:] {
			ok = yield(under[0])
		}
		if !ok {
			return false
		}
		if len(under) > 0 && under[0].Key == key {
			under = under[1:]
		}
		if v.value != nil {
			ok = yield(kv.Record{Key: key, Value: v.value, Revision: v.revision})
		}
		return ok
	})
	for ; ok && len(under) > 0; under = under[1:] {
		ok = yield(under[0])
	}
	return ok
}

// written yields the versions of a revision of the written keys of a range, also deletions, up to the key
// last, or to the end for "".
func (s *Store) written(r kv.Range, revision int64, last string, yield func(key string, v version) bool) {
	s.keys.Ascend(max(r.Prefix, r.After), func(key string, k *written) bool {
		if !strings.HasPrefix(key, r.Prefix) || last != "" && key > last {
			return false
		}
		v, known := at(k.versions, revision)
		if !known || r.After != "" && key <= r.After {
			return true
		}
		return yield(key, v)
	})
}

// Count implements kv.Counter.
func (s *Store) Count(ctx context.Context, prefix string, revision int64) (n int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if revision, err = s.resolve(revision); err != nil {
		return 0, err
	}
	if s.options.Over != nil {
		if n, err = s.options.Over.Count(ctx, prefix); err != nil {
			return 0, err
		}
	}
	s.keys.Ascend(prefix, func(key string, k *written) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		v, known := at(k.versions, revision)
		switch {
		case known && v.value != nil && !k.hides:
			n++
		case known && v.value == nil && k.hides:
			n--
		}
		return true
	})
	return n, nil
}

// records are values that Options.Over has of the keys of a write.
type records []kv.Record

// under returns the values of keys of a write that the store reads from Options.Over.
func (s *Store) under(ctx context.Context, w *kv.Write) (found records, err error) {
	if s.options.Over == nil {
		return nil, nil
	}
	var keys []string
	s.mu.RLock()
	note := func(key string) {
		if _, written := s.keys.Get(key); !written {
			keys = append(keys, key)
		}
	}
	for c := range w.All() {
		note(c.Key)
	}
	for _, g := range w.Guards {
		note(g.Key)
	}
	s.mu.RUnlock()
	for _, key := range keys {
		record, err := s.options.Over.Get(ctx, key)
		switch {
		case err == nil:
			found = append(found, record)
		case !errors.Is(err, kv.ErrNotFound):
			return nil, err
		}
	}
	return found, nil
}

// find returns the version of a key. It has no revision if there is none.
func (r records) find(key string) version {
	for i := range r {
		if r[i].Key == key {
			return version{r[i].Revision, r[i].Value}
		}
	}
	return version{}
}
