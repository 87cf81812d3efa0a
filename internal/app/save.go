package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// saved returns the store for backups. A store in memory is written to a file first.
func (a *App) saved(o Options) kv.Backend {
	store, ok := kv.As[*memkv.Store](a.backend)
	if !ok || o.opened != nil { // the opened file is a backup
		return a.backend
	}
	s := inMemory{Store: store}
	if o.copied != nil { // its values are those that a client of the encrypted store sees
		s.secrets = a.given.encryption.config
	}
	return s
}

// inMemory is a store in memory that can save itself.
type inMemory struct {
	*memkv.Store
	secrets *encrypt.Config // that encrypts the copy, but not the store; nil for none
}

var _ kv.Saver = inMemory{}

// Save implements kv.Saver.
func (s inMemory) Save(ctx context.Context, begin func(size int64) io.Writer) (err error) {
	state, release, err := kv.Keep(ctx, s.Store, kv.Latest)
	if err != nil {
		return err
	}
	defer release()
	if s.secrets != nil {
		keys := encrypt.NewKeyring(ctx, s.secrets, builtin.Stored(), nil)
		defer func() { err = errors.Join(err, keys.Close()) }()
		state = restored{state, keys}
	}
	dir, err := os.MkdirTemp("", "anykind-backup-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := boltkv.Create(ctx, dir, state); err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(dir, boltkv.FileName))
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	_, err = io.Copy(begin(info.Size()), file)
	return err
}
