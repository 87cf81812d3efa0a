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

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/anykind/anykind/internal/store/boltfile"
)

// changesBucket has the changes.
const changesBucket = "key"

// A key of a change is the revision of its transaction, a separator, the place of the change in it and,
// if it is a deletion, a mark.
const (
	revisionBytes = 8
	placeAt       = revisionBytes + 1
	keyBytes      = placeAt + 8
)

// A revision is the position of a change.
type revision struct{ transaction, place uint64 }

// Each calls visit for each key with a prefix, in the order of the last changes. all is the number of
// such keys. It reads the file twice, page by page, and remembers a key and a revision of each.
func Each(file, prefix string, visit func(key string, value []byte, all int) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	newest := map[string]revision{}
	if err := each(f, prefix, func(at revision, change *mvccpb.KeyValue, deleted bool) error {
		if newest[string(change.Key)] = at; deleted {
			delete(newest, string(change.Key))
		}
		return nil
	}); err != nil {
		return err
	}
	return each(f, prefix, func(at revision, change *mvccpb.KeyValue, _ bool) error {
		if newest[string(change.Key)] != at {
			return nil
		}
		return visit(string(change.Key), change.Value, len(newest))
	})
}

// each calls see for each change of a key with a prefix, in order.
func each(file *os.File, prefix string, see func(at revision, change *mvccpb.KeyValue, deleted bool) error) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f, err := boltfile.Read(file.Name(), file, info.Size())
	if err != nil {
		return err
	}
	var changes []byte
	if err := f.Buckets(func(_ boltfile.PageID, e boltfile.Element) error {
		if e.Bucket && string(e.Key) == changesBucket {
			changes = e.Value
		}
		return nil
	}); err != nil {
		return err
	}
	if changes == nil {
		return fmt.Errorf("%s is not a snapshot of etcd", file.Name())
	}
	return f.Walk(changes, func(where boltfile.PageID, e boltfile.Element) error {
		if len(e.Key) < keyBytes {
			return f.Damage(where, fmt.Sprintf("the key %x is not one of a change", e.Key))
		}
		var change mvccpb.KeyValue
		if err := proto.Unmarshal(e.Value, &change); err != nil {
			return f.Damage(where, err.Error())
		}
		if !strings.HasPrefix(string(change.Key), prefix) {
			return nil
		}
		at := revision{binary.BigEndian.Uint64(e.Key), binary.BigEndian.Uint64(e.Key[placeAt:])}
		return see(at, &change, len(e.Key) > keyBytes)
	})
}
