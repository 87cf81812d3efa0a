package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/etcdsnapshot"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/transform"
)

// opened is the content of the file of Options.Open.
type opened struct {
	*kv.Mapping
	ofEtcd bool
	prefix string // of the keys in the file
}

// open maps the file of Options.Open, and returns the options for a server of its content: in memory,
// without controllers and without calls of admission webhooks, so that the content stays as it is and the
// server calls no programs of the cluster that the file is from.
func (a *App) open(o Options) (Options, error) {
	if o.Open == "" {
		return o, nil
	}
	var err error
	if o.opened, err = openFile(o.Open, o.Etcd.Prefix); err != nil {
		return o, notOpened(o.Open, err)
	}
	a.later(func(context.Context) error { o.opened.Release(); return nil })
	o.From = &Snapshot{stored: o.opened.state()}
	o.InMemory, o.Controllers = true, []string{}
	o.Admission = o.Admission.withoutWebhooks()
	return o, nil
}

// notOpened returns the error for a file that cannot be opened.
func notOpened(name string, err error) error {
	var damage *kv.CorruptError
	if errors.As(err, &damage) {
		return fmt.Errorf("%s is no backup of anykind and no snapshot of etcd, or is damaged: %w", name, err)
	}
	return err
}

// state returns the content as it is in the file.
func (f *opened) state() kv.State { return memkv.NewSnapshot(f.Records, f.Revision) }

// StoreFile is the name of the file with the objects in a data directory.
const StoreFile = boltkv.FileName

// MapStore maps the file of a store: the newest values of the keys with a prefix.
func MapStore(file, prefix string) (*kv.Mapping, error) { return boltkv.Mapped(file, prefix) }

// openFile maps a data directory, its file, or a snapshot of etcd. etcdPrefix is the prefix of keys in etcd.
func openFile(name, etcdPrefix string) (*opened, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	of := &opened{ofEtcd: true, prefix: etcdRoot(etcdPrefix)}
	if info.IsDir() {
		name = filepath.Join(name, boltkv.FileName)
	} else if of.Mapping, err = etcdsnapshot.Mapped(name, of.prefix); err != nil && !errors.Is(err, etcdsnapshot.ErrNoSnapshot) {
		return nil, err
	}
	if of.Mapping == nil {
		of.ofEtcd, of.prefix = false, resource.Root
		of.Mapping, err = boltkv.Mapped(name, of.prefix)
		if errors.Is(err, boltkv.ErrInUse) {
			return nil, fmt.Errorf("%s is in use by another process; stop it or open a copy", name)
		}
		return of, err
	}
	if len(of.Records) == 0 {
		return nil, fmt.Errorf("%s has no keys below %s; name the prefix of its API server with --etcd-prefix", name, of.prefix)
	}
	for i := range of.Records {
		key := &of.Records[i].Key
		*key = resource.Root + (*key)[len(of.prefix):]
	}
	return of, nil
}

// external returns the key in the file for a key of the store.
func (f *opened) external(key string) string {
	return f.prefix + strings.TrimPrefix(key, resource.Root)
}

// decoded returns the store with the values of a file as a server keeps them.
func (f *opened) decoded(b kv.Backend, o Options) kv.Backend {
	if f == nil || !f.ofEtcd {
		return b
	}
	return transform.New(b, newStoredForm(o), transform.Options{MaxValueBytes: o.MaxObjectBytes})
}

// protect rejects the writes of clients to an opened file.
func (f *opened) protect(p *registry.Plugins, source string) {
	if f != nil {
		p.Guard = admission.ReadOnly{Source: source}
	}
}

// etcdRoot returns the prefix of keys in etcd, with a slash at the end.
func etcdRoot(prefix string) string {
	if prefix == "" {
		prefix = resource.Root
	}
	return strings.TrimRight("/"+strings.TrimLeft(prefix, "/"), "/") + "/"
}
