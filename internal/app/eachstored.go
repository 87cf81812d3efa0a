package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/kv/boltkv"
)

// storedPage is how many records are read at once.
const storedPage = 500

// EachStored calls visit for each key with a prefix in the data directory of a server that does not
// run, in order. It reads a copy, so that the store stays as it is.
func EachStored(ctx context.Context, dir, prefix string, visit func(key string, value []byte) error) error {
	copied, err := os.MkdirTemp("", "anykind-store-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(copied)
	if err := copyFile(filepath.Join(copied, boltkv.FileName), filepath.Join(dir, boltkv.FileName)); err != nil {
		return err
	}
	store, err := boltkv.Open(copied, boltkv.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	for r := (kv.Range{Prefix: prefix, Limit: storedPage}); ; {
		page, err := store.List(ctx, r)
		if err != nil {
			return err
		}
		for _, record := range page.Records {
			if err := visit(record.Key, record.Value); err != nil {
				return err
			}
			r.After = record.Key
		}
		if r.Revision = page.Revision; !page.More {
			return nil
		}
	}
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
