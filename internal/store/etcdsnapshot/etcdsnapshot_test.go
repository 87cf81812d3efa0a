package etcdsnapshot

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"
)

// Of each key the last change counts, and a key that was deleted is not there.
func TestMapped(t *testing.T) {
	file := filepath.Join(t.TempDir(), "snapshot.db")
	db, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("key"))
		if err != nil {
			return err
		}
		for i, c := range []struct {
			key, value string
			deleted    bool
		}{
			{"/a/1", "old", false}, {"/b/1", "other", false}, {"/a/2", "gone", false}, {"/a/1", "new", false}, {"/a/2", "", true}, {"/a/3", "last", false},
		} {
			k := binary.BigEndian.AppendUint64(nil, uint64(i/2)) // two changes in each transaction
			k = binary.BigEndian.AppendUint64(append(k, '_'), uint64(i%2))
			if c.deleted {
				k = append(k, 't')
			}
			v, err := proto.Marshal(&mvccpb.KeyValue{Key: []byte(c.key), Value: []byte(c.value)})
			if err != nil {
				return err
			}
			if err := b.Put(k, v); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	m, err := Mapped(file, "/a/")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range m.Records {
		got = append(got, fmt.Sprintf("%s %s at %d", r.Key, r.Value, r.Revision))
	}
	if want := []string{"/a/1 new at 1", "/a/3 last at 2"}; m.Revision != 2 || !slices.Equal(got, want) {
		t.Errorf("%q at %d, want %q at 2", got, m.Revision, want)
	}
}

func TestNoSnapshot(t *testing.T) {
	dir := t.TempDir()
	if _, err := Mapped(filepath.Join(dir, "nothing"), "/"); !os.IsNotExist(err) {
		t.Errorf("%v, want that there is no such file", err)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Mapped(text, "/"); err == nil {
		t.Error("a text is a snapshot")
	}
}
