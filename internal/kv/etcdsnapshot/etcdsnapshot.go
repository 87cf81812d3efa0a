// Package etcdsnapshot reads snapshots of etcd, as etcdctl snapshot save writes them: files of bbolt with
// every change that etcd remembers.
//
// It changes nothing, and knows no objects.
package etcdsnapshot

import (
	"encoding/binary"
	"fmt"
	"os"
	"strings"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// A key of a change is the revision of its transaction, a separator, the place of the change in it and,
// if it is a deletion, a mark.
const (
	revisionBytes = 8
	placeAt       = revisionBytes + 1
	keyBytes      = placeAt + 8
)

// A revision is when a change was made.
type revision struct{ transaction, place uint64 }

// Each calls visit for each key with a prefix, in the order of their last changes. all is how many there
// are. It remembers a key and a revision of each.
func Each(file, prefix string, visit func(key string, value []byte, all int) error) error {
	if _, err := os.Stat(file); err != nil { // which bbolt would make
		return err
	}
	db, err := bolt.Open(file, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer db.Close()
	return db.View(func(tx *bolt.Tx) error {
		changes := tx.Bucket([]byte("key"))
		if changes == nil {
			return fmt.Errorf("%s is not a snapshot of etcd", file)
		}
		newest := map[string]revision{}
		if err := each(changes, prefix, func(at revision, change *mvccpb.KeyValue, deleted bool) error {
			if newest[string(change.Key)] = at; deleted {
				delete(newest, string(change.Key))
			}
			return nil
		}); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		return each(changes, prefix, func(at revision, change *mvccpb.KeyValue, _ bool) error {
			if newest[string(change.Key)] != at {
				return nil
			}
			return visit(string(change.Key), change.Value, len(newest))
		})
	})
}

// each calls see for each change of a key with a prefix, in order.
func each(changes *bolt.Bucket, prefix string, see func(at revision, change *mvccpb.KeyValue, deleted bool) error) error {
	return changes.ForEach(func(k, v []byte) error {
		var change mvccpb.KeyValue
		if len(k) < keyBytes {
			return fmt.Errorf("the key %x is not one of a change", k)
		}
		if err := proto.Unmarshal(v, &change); err != nil {
			return err
		}
		if !strings.HasPrefix(string(change.Key), prefix) {
			return nil
		}
		at := revision{binary.BigEndian.Uint64(k), binary.BigEndian.Uint64(k[placeAt:])}
		return see(at, &change, len(k) > keyBytes)
	})
}
