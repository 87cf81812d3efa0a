package history

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/anykind/anykind/internal/store/kv"
)

// Get implements kv.Backend.
func (s *Store) Get(ctx context.Context, key string, revision int64) (kv.Record, error) {
	if err := s.check(revision); err != nil {
		return kv.Record{}, err
	}
	record, err := s.below.Get(ctx, key, revision)
	if !compacted(err) {
		return record, err
	}
	err = s.inFile(ctx, revision, func(r *reading) error {
		p, err := r.past(key, revision)
		switch {
		case err != nil:
			return err
		case p.absent:
			return kv.ErrNotFound
		case p.known:
			record = p.record
			return nil
		}
		record, err = s.below.Get(ctx, key, r.state.archived)
		if err == nil && record.Revision > revision {
			return kv.ErrNotFound
		}
		return err
	})
	if err != nil {
		return kv.Record{}, err
	}
	return record, nil
}

func compacted(err error) bool {
	var compacted *kv.CompactedError
	return errors.As(err, &compacted)
}

// inFile reads a state from the file. read uses the state of the backend at the last archived revision of the
// file; if that is compacted meanwhile, read is called again.
func (s *Store) inFile(ctx context.Context, revision int64, read func(*reading) error) error {
	for {
		err := s.file.view(ctx, func(r *reading) error {
			if revision < r.state.oldest {
				return &kv.CompactedError{Asked: revision, Oldest: r.state.oldest}
			}
			return read(r)
		})
		if !compacted(err) || ctx.Err() != nil {
			return err
		}
		if err := s.check(revision); err != nil {
			return err
		}
	}
}

// List implements kv.Backend.
func (s *Store) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	if err := s.check(r.Revision); err != nil {
		return kv.Page{}, err
	}
	page, err := s.below.List(ctx, r)
	if !compacted(err) {
		return page, err
	}
	err = s.inFile(ctx, r.Revision, func(in *reading) error {
		page = kv.Page{Revision: r.Revision}
		return s.listInto(&page, ctx, in, r)
	})
	if err != nil {
		return kv.Page{}, err
	}
	return page, nil
}

// listInto lists an old state. Keys without a version in the file have the value of the backend: they did not change since.
func (s *Store) listInto(page *kv.Page, ctx context.Context, in *reading, r kv.Range) error {
	below := belowPages{backend: s.below, ctx: ctx, r: kv.Range{Prefix: r.Prefix, After: r.After, Limit: 1024, Revision: in.state.archived}}
	archived := in.keys.Cursor()
	known, _ := archived.Seek([]byte(max(r.Prefix, r.After)))
	if r.After != "" && string(known) == r.After {
		known, _ = archived.Next()
	}
	add := func(record kv.Record) bool {
		if r.Limit > 0 && len(page.Records) == r.Limit {
			page.More = true
			return false
		}
		page.Records = append(page.Records, record)
		return true
	}
	for i := 0; ; i++ {
		if i%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if known != nil && !bytes.HasPrefix(known, []byte(r.Prefix)) {
			known = nil
		}
		now, err := below.peek()
		if err != nil || now == nil && known == nil {
			return err
		}
		key := string(known)
		if known == nil || now != nil && now.Key < key {
			key = now.Key
		}
		record, err := in.recordAt(key, now, r.Revision)
		if err != nil {
			return err
		}
		if record != nil && !add(*record) {
			return nil
		}
		if now != nil && now.Key == key {
			below.next()
		}
		if string(known) == key {
			known, _ = archived.Next()
		}
	}
}

// recordAt returns the record of a key at a revision, or nil. now is the next record of the backend, of this key or
// a later one.
func (r *reading) recordAt(key string, now *kv.Record, revision int64) (*kv.Record, error) {
	here := now != nil && now.Key == key
	if here && now.Revision <= revision {
		return now, nil
	}
	p, err := r.past(key, revision)
	if err != nil || !p.known || p.absent {
		return nil, err
	}
	return &p.record, nil
}

// belowPages reads a range of the backend in pages.
type belowPages struct {
	backend kv.Backend
	ctx     context.Context
	r       kv.Range
	page    []kv.Record
	ended   bool
}

// peek returns the next record, or nil at the end.
func (b *belowPages) peek() (*kv.Record, error) {
	if len(b.page) == 0 && !b.ended {
		page, err := b.backend.List(b.ctx, b.r)
		if err != nil {
			return nil, err
		}
		b.page, b.ended = page.Records, !page.More
		if len(b.page) > 0 {
			b.r.After = b.page[len(b.page)-1].Key
		}
	}
	if len(b.page) == 0 {
		return nil, nil
	}
	return &b.page[0], nil
}

func (b *belowPages) next() { b.page = b.page[1:] }

// within reports whether a key is one of keys: a prefix if it ends in a slash, or one key.
func within(keys, key string) bool {
	return key == keys || strings.HasSuffix(keys, "/") && strings.HasPrefix(key, keys)
}
