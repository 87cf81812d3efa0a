package boltkv_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/memkv"
)

// A store that is created from a state has its records, at their revisions, and goes on after them.
func TestCreate(t *testing.T) {
	var records []kv.Record
	for i := range 2500 {
		records = append(records, kv.Record{Key: fmt.Sprintf("/k/%04d", i), Value: fmt.Appendf(nil, "value %d", i), Revision: int64(3000 - i)})
	}
	records[7].Revision = records[8].Revision // of one transaction of etcd
	dir := filepath.Join(t.TempDir(), "new", "data")
	if err := boltkv.Create(t.Context(), dir, memkv.NewSnapshot(records, 5000)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // also after a restart
		s, err := boltkv.Open(dir, boltkv.Options{})
		if err != nil {
			t.Fatal(err)
		}
		page, err := s.List(t.Context(), kv.Range{})
		if err != nil || len(page.Records) < len(records) {
			t.Fatal(len(page.Records), err)
		}
		for i, r := range page.Records[:len(records)] {
			want := records[i]
			if i == 8 {
				want.Revision = 5001
			}
			if fmt.Sprint(r) != fmt.Sprint(want) {
				t.Fatalf("%v, want %v", r, want)
			}
		}
		var compacted *kv.CompactedError
		if _, err := s.Get(t.Context(), "/k/0001", 5000); !errors.As(err, &compacted) {
			t.Errorf("an earlier state: %v", err)
		}
		if at, err := s.Commit(t.Context(), kv.Write{Key: fmt.Sprint("/l/", page.Revision), Value: []byte("x")}); err != nil || at != page.Revision+1 || at <= 5001 {
			t.Errorf("the next write is at %d, %v", at, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := boltkv.Create(t.Context(), dir, memkv.NewSnapshot(nil, 1)); !errors.Is(err, boltkv.ErrExists) {
		t.Errorf("over a store: %v", err)
	}
	empty := t.TempDir()
	if err := boltkv.Create(t.Context(), empty, memkv.NewSnapshot(nil, 1)); err != nil {
		t.Fatal(err)
	}
	s, err := boltkv.Open(empty, boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if revision, err := s.Revision(t.Context()); err != nil || revision != 1 || s.Close() != nil {
		t.Errorf("%d, %v", revision, err)
	}
	files, err := os.ReadDir(empty)
	if err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
}
