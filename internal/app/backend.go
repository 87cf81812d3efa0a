package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/etcdkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
	"github.com/anykind/anykind/internal/store/transform"
)

// openBackend opens the store of the options. Its errors are for the administrator of a server that
// fails to start. toEtcd dials etcd; nil is the default dialer.
//
// With an encryption configuration, values are encrypted in the store. The store has room for the
// overhead.
func openBackend(ctx context.Context, o Options, secrets *encrypt.Config, toEtcd egress.Dial, failed func(error)) (kv.Backend, *encrypt.Keyring, error) {
	limit, room := cmp.Or(o.MaxObjectBytes, kv.DefaultMaxValueBytes), o
	if secrets != nil {
		room.MaxObjectBytes = limit + encrypt.Overhead
	}
	b, err := openStore(ctx, room, toEtcd, failed)
	if err != nil {
		return nil, nil, err
	}
	var keys *encrypt.Keyring
	if secrets != nil {
		most := limit
		var external func(string) string
		if store, ok := b.(*etcdkv.Store); ok {
			external, most = store.External, 2*limit // the stored form of an object may be larger than its JSON
		}
		if o.opened != nil {
			external = o.opened.external
		}
		keys = encrypt.NewKeyring(ctx, secrets, builtin.Stored(o.Gates), external)
		b = transform.New(b, keys, transform.Options{MaxValueBytes: most})
	}
	if o.Backend == nil && len(o.Etcd.Servers) > 0 { // objects in etcd have kube-apiserver's format
		b = transform.New(b, newStoredForm(o), transform.Options{MaxValueBytes: limit})
	}
	if b, err = o.History.open(b, keys, o); err != nil {
		if keys != nil {
			err = errors.Join(err, keys.Close())
		}
		return nil, nil, err
	}
	return o.opened.decoded(b, o), keys, nil
}

func openStore(ctx context.Context, o Options, toEtcd egress.Dial, failed func(error)) (kv.Backend, error) {
	if o.Backend != nil {
		return o.Backend, nil
	}
	if len(o.Etcd.Servers) > 0 {
		return o.Etcd.open(ctx, o.MaxObjectBytes, toEtcd, o.Gates)
	}
	if o.Dir == "" || o.InMemory {
		return memkv.New(memkv.Options{MaxValueBytes: o.MaxObjectBytes, Over: o.From.state()}), nil
	}
	fatal := o.Fatal
	if fatal == nil {
		fatal = failed
	}
	store, err := boltkv.Open(o.Dir, boltkv.Options{Fatal: fatal, Logger: o.Log, MaxValueBytes: o.MaxObjectBytes})
	if err == nil {
		return store, nil
	}
	dir := o.Dir
	if absolute, err := filepath.Abs(dir); err == nil {
		dir = absolute
	}
	var damage *kv.CorruptError
	switch {
	case errors.Is(err, boltkv.ErrInUse):
		return nil, fmt.Errorf("data directory %s is in use by another process; stop it or choose another directory", dir)
	case errors.Is(err, boltkv.ErrNotWritable):
		return nil, fmt.Errorf("data directory %s is not writable; change its permissions or choose another directory: %w", dir, err)
	case errors.As(err, &damage):
		return nil, fmt.Errorf("the store in data directory %s is damaged at %s: %s; the file is unchanged, restore it from a backup",
			dir, damage.Where, damage.Reason)
	}
	return nil, err
}

// backendCheck returns a check that makes the cheapest request to the store.
func backendCheck(b kv.Backend) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := b.Revision(ctx)
		return err
	}
}
