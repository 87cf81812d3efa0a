package boltkv

import (
	"context"
	"io"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

var _ kv.Saver = (*Store)(nil)

// Save implements kv.Saver. Writes go on meanwhile; pages that they replace stay in the file until its end.
func (s *Store) Save(ctx context.Context, begin func(size int64) io.Writer) (err error) {
	defer boltfile.RecoverDamage(s.db.Path(), &err)()
	return s.db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(while{ctx, begin(tx.Size())})
		if err != nil && ctx.Err() != nil {
			return ctx.Err() // bbolt has only its text
		}
		return err
	})
}

// A while writer fails when the context ends.
type while struct {
	ctx context.Context
	to  io.Writer
}

func (w while) Write(data []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(data)
}
