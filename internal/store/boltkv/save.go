package boltkv

import (
	"context"
	"io"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

var _ kv.Saver = (*Store)(nil)

// Copy implements kv.Saver. Writes go on meanwhile; pages that they replace stay in the file until its end. The copy
// needs no journal.
func (s *Store) Copy(ctx context.Context) (kv.Copy, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.appending.Lock()
	defer s.appending.Unlock()
	if err := s.endJournal(); err != nil {
		return nil, err
	}
	tx, err := s.db.Begin(false)
	if err != nil {
		return nil, s.readError(err)
	}
	return copied{tx, s.db.Path()}, nil
}

// copied is the file of one transaction.
type copied struct {
	tx   *bolt.Tx
	path string
}

// Size implements kv.Copy.
func (c copied) Size() int64 { return c.tx.Size() }

// WriteFrom implements kv.Copy.
func (c copied) WriteFrom(ctx context.Context, to io.Writer, offset int64) (err error) {
	defer boltfile.RecoverDamage(c.path, &err)()
	_, err = c.tx.WriteTo(&after{ctx, to, offset})
	if err != nil && ctx.Err() != nil {
		return ctx.Err() // bbolt has only its text
	}
	return err
}

// Close implements kv.Copy.
func (c copied) Close() error { return c.tx.Rollback() }

// An after writer leaves out the first bytes, and fails when the context ends.
type after struct {
	ctx  context.Context
	to   io.Writer
	skip int64
}

func (w *after) Write(data []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n := min(int64(len(data)), w.skip)
	if w.skip -= n; n == int64(len(data)) {
		return len(data), nil
	}
	written, err := w.to.Write(data[n:])
	return int(n) + written, err
}
