package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

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

// Copy implements kv.Saver.
func (s inMemory) Copy(ctx context.Context) (_ kv.Copy, err error) {
	state, release, err := kv.Keep(ctx, s.Store, kv.Latest)
	if err != nil {
		return nil, err
	}
	defer release()
	if s.secrets != nil {
		keys, failed := anotherKeyring(ctx, s.secrets)
		if failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, keys.Close()) }()
		state = restored{state, keys}
	}
	dir, err := os.MkdirTemp("", "anykind-backup-")
	if err != nil {
		return nil, err
	}
	made := inFile{folder: dir}
	if err = boltkv.Create(ctx, dir, state); err == nil {
		made.file, err = os.Open(filepath.Join(dir, boltkv.FileName))
	}
	var info os.FileInfo
	if err == nil {
		info, err = made.file.Stat()
	}
	if err != nil {
		return nil, errors.Join(err, made.Close())
	}
	made.size = info.Size()
	return made, nil
}

// inFile is a copy in a temporary file.
type inFile struct {
	folder string
	file   *os.File
	size   int64
}

// Size implements kv.Copy.
func (c inFile) Size() int64 { return c.size }

// WriteFrom implements kv.Copy.
func (c inFile) WriteFrom(ctx context.Context, to io.Writer, offset int64) error {
	_, err := io.Copy(to, io.NewSectionReader(c.file, offset, c.size-offset))
	return errors.Join(err, ctx.Err())
}

// Close implements kv.Copy.
func (c inFile) Close() error {
	var err error
	if c.file != nil {
		err = c.file.Close()
	}
	return errors.Join(err, os.RemoveAll(c.folder))
}
