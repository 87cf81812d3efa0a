package etcdsnapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

	"github.com/anykind/anykind/internal/store/kv"
)

// Of each key the last change counts, and a key that was deleted is not there.
func TestMapped(t *testing.T) {
	file := specimen(t)
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

// specimen writes a snapshot.
func specimen(t *testing.T) string {
	t.Helper()
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
	return file
}

// A damaged or shortened file is an error, or has the same keys: the damage is in a value or in an unused
// part.
func TestDamagedSnapshot(t *testing.T) {
	whole, err := os.ReadFile(specimen(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.db")
	check := func(what string, data []byte) (ok bool) {
		t.Helper()
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Mapped(path, "/")
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: an error of several lines: %v", what, err)
		}
		return err == nil && m != nil
	}
	failed := 0
	for at := 0; at < len(whole); at += 23 {
		for _, flip := range []byte{0x81} {
			damaged := bytes.Clone(whole)
			damaged[at] ^= flip
			if !check(fmt.Sprint("byte ", at), damaged) {
				failed++
			}
		}
		if at%512 < 23 && check(fmt.Sprint("the first ", at), whole[:at]) && at < len(whole)/2 {
			t.Errorf("the first %d bytes of %d are a snapshot", at, len(whole))
		}
	}
	if failed < 5 {
		t.Errorf("only %d damages were found", failed)
	}
}

// A changed bit anywhere in a snapshot with a checksum is found, also in a value. The database of a member has
// no checksum.
func TestVerify(t *testing.T) {
	member := specimen(t)
	if err := Verify(member); err != nil {
		t.Error(err)
	}
	content, err := os.ReadFile(member)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	snapshot := append(content, sum[:]...)
	path := filepath.Join(t.TempDir(), "snapshot.db")
	for at := -1; at < len(snapshot); at += 509 {
		changed := bytes.Clone(snapshot)
		if at >= 0 {
			changed[at] ^= 1
		}
		if err := os.WriteFile(path, changed, 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *kv.CorruptError
		if err := Verify(path); errors.As(err, &damage) != (at >= 0) {
			t.Fatalf("byte %d: %v", at, err)
		}
	}
}
