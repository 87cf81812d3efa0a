package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/encrypt"
	"github.com/anykind/anykind/internal/store/etcdsnapshot"
	"github.com/anykind/anykind/internal/store/kv"
)

// checkRestore returns the error for a store that a file cannot be restored to.
func (o *Options) checkRestore() error {
	switch {
	case o.Restore == "":
		return nil
	case o.Open != "":
		return errors.New("--restore and --open are mutually exclusive: --open serves a file read-only")
	case len(o.Etcd.Servers) > 0, o.InMemory, o.Backend != nil, o.Dir == "":
		return errors.New("--restore needs a store in --data-dir: leave out --etcd-servers and --in-memory, or --restore")
	}
	return nil
}

// restore creates the store in the data directory with the objects of a file.
func (o Options) restore(ctx context.Context, secrets *encrypt.Config) (err error) {
	if o.Restore == "" {
		return nil
	}
	from := o
	if from.opened, err = openFile(o.Restore, o.Etcd.Prefix); err != nil {
		return notOpened(o.Restore, err)
	}
	defer from.opened.Release()
	if from.opened.ofEtcd {
		if err := etcdsnapshot.Verify(o.Restore); err != nil {
			return notOpened(o.Restore, err)
		}
	}
	from.From, from.InMemory, from.History = &Snapshot{stored: from.opened.state()}, true, Remembering{}
	reading := secrets
	if secrets != nil {
		if reading, err = secrets.Copy(); err != nil {
			return err
		}
	}
	opened, keys, err := openBackend(ctx, from, reading, nil, nil)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, opened.Close())
		if keys != nil {
			err = errors.Join(err, keys.Close())
		}
	}()
	state, release, err := kv.Keep(ctx, opened, kv.Latest)
	if err != nil {
		return err
	}
	defer release()
	restored := restored{State: state}
	if secrets != nil {
		if restored.keys, err = anotherKeyring(ctx, secrets); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, restored.keys.Close()) }()
	}
	err = boltkv.Create(ctx, o.Dir, restored)
	if errors.Is(err, boltkv.ErrExists) {
		return fmt.Errorf("data directory %s has a store already: leave out --restore to serve it, or choose another --data-dir", o.Dir)
	}
	if err == nil {
		o.Log.Info("the objects of a file were restored", "file", o.Restore, "revision", state.Revision())
	}
	return err
}

// restored is a state with its values as the store of the server has them.
type restored struct {
	kv.State
	keys *encrypt.Keyring // nil without encryption
}

// List implements kv.State.
func (s restored) List(ctx context.Context, r kv.Range) (kv.Page, error) {
	page, err := s.State.List(ctx, r)
	if err != nil {
		return kv.Page{}, err
	}
	for i := range page.Records {
		record := &page.Records[i]
		if encrypt.Encrypted(record.Value) { // otherwise it would be lost with the file
			return kv.Page{}, fmt.Errorf("the value of %s cannot be decrypted: give the EncryptionConfiguration of the file with --encryption-provider-config", record.Key)
		}
		if s.keys == nil {
			continue
		}
		if record.Value, err = s.keys.Encode(ctx, record.Key, record.Value); err != nil {
			return kv.Page{}, fmt.Errorf("encrypting %s: %w", record.Key, err)
		}
	}
	return page, nil
}
