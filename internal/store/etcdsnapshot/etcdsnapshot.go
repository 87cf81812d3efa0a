// Package etcdsnapshot reads snapshots of etcd, as etcdctl snapshot save writes them: files of bbolt with
// every change that etcd remembers.
//
// It changes nothing, and knows no objects.
package etcdsnapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anykind/anykind/internal/store/boltfile"
	"github.com/anykind/anykind/internal/store/kv"
)

// changesBucket has the changes.
const changesBucket = "key"

// A key of a change is the revision of its transaction, a separator, the place of the change in it and,
// if it is a deletion, a mark.
const (
	revisionBytes = 8
	keyBytes      = revisionBytes + 1 + 8
)

// ErrNoSnapshot is the error for a file of bbolt that etcd did not write.
var ErrNoSnapshot = errors.New("it is not a snapshot of etcd")

// sector is a divisor of the size of a database. A snapshot has a checksum after it.
const sector = 512

// Verify compares the content of a snapshot with the checksum at its end. Snapshots of etcd and etcdctl have one;
// a copy of a member's database has none. It reads the whole file.
// Errors: *kv.CorruptError, those of the operating system.
func Verify(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size()%sector != sha256.Size {
		return err
	}
	sum, end := sha256.New(), make([]byte, sha256.Size)
	if _, err := io.CopyN(sum, file, info.Size()-sha256.Size); err != nil {
		return err
	}
	if _, err := io.ReadFull(file, end); err != nil {
		return err
	}
	if !bytes.Equal(sum.Sum(nil), end) {
		return &kv.CorruptError{Where: name, Reason: "its content does not match the checksum at its end"}
	}
	return nil
}

// Mapped returns the newest value of each key with a prefix. It reads the keys, and of the values only the
// pages that they share with keys.
func Mapped(name, prefix string) (m *kv.Mapping, err error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close() // It stays mapped.
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || info.Size() == 0:
		return nil, fmt.Errorf("%s: %w", name, ErrNoSnapshot)
	}
	data, _, err := boltfile.Map(file, info.Size())
	if err != nil {
		return nil, err
	}
	defer boltfile.RecoverDamage(name, &err)()
	f, err := boltfile.Mapped(name, data)
	if err != nil {
		return nil, err
	}
	var changes []byte
	if err := f.Buckets(func(_ boltfile.PageID, e boltfile.Element) error {
		if e.Bucket && string(e.Key) == changesBucket {
			changes = e.Value
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if changes == nil {
		return nil, fmt.Errorf("%s: %w", name, ErrNoSnapshot)
	}
	var newest kv.Newest
	var revision int64
	err = f.Walk(changes, func(where boltfile.PageID, e boltfile.Element) error {
		if len(e.Key) < keyBytes {
			return f.Damage(where, fmt.Sprintf("the key %x is not one of a change", e.Key))
		}
		key, value, ok := parse(e.Value)
		if !ok {
			return f.Damage(where, fmt.Sprintf("the change %x is not one of etcd", e.Key))
		}
		revision = int64(binary.BigEndian.Uint64(e.Key))
		if bytes.HasPrefix(key, []byte(prefix)) {
			newest.Add(key, value, revision, len(e.Key) > keyBytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &kv.Mapping{Records: newest.Records(), Revision: revision, Release: func() {}}, nil
}

// Fields of mvccpb.KeyValue.
const (
	keyField   = 1
	valueField = 5
)

// parse returns the key and the value of a mvccpb.KeyValue. They share its bytes.
func parse(b []byte) (key, value []byte, ok bool) {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return nil, nil, false
		}
		b = b[n:]
		if wire == protowire.BytesType && (number == keyField || number == valueField) {
			field, n := protowire.ConsumeBytes(b)
			if n < 0 {
				return nil, nil, false
			}
			if b = b[n:]; number == keyField {
				key = field
			} else {
				value = field
			}
			continue
		}
		if n = protowire.ConsumeFieldValue(number, wire, b); n < 0 {
			return nil, nil, false
		}
		b = b[n:]
	}
	return key, value, key != nil
}
