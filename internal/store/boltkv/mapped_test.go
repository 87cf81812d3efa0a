package boltkv_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
)

// mappedOf returns the values of Mapped.
func mappedOf(dir, prefix string) ([]string, error) {
	m, err := boltkv.Mapped(filepath.Join(dir, boltkv.FileName), prefix)
	if err != nil {
		return nil, err
	}
	defer m.Release()
	var got []string
	for _, r := range m.Records {
		got = append(got, fmt.Sprintf("%s=%s", r.Key, r.Value))
	}
	return got, nil
}

// Mapped has the existing keys, before and after a compaction, in the order of the last writes.
func TestMapped(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	at := map[string]int64{}
	write := func(key, value string) {
		t.Helper()
		w := kv.Write{Key: key, Value: []byte(value), Expect: at[key]}
		if value == "" {
			w.Value = nil
		}
		r, err := s.Commit(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if at[key] = r; value == "" {
			at[key] = kv.Absent
		}
	}
	const large = 40_000 // is not in one page
	write("/a/1", "old")
	write("/b/1", "other")
	write("/a/2", "gone")
	write("/a/3", strings.Repeat("x", large))
	write("/a/1", "new")
	write("/a/2", "")
	write("/a/4", "deleted")
	write("/a/4", "")
	write("/a/4", "again")
	want := []string{"/a/3=" + strings.Repeat("x", large) + "", "/a/1=new", "/a/4=again"}
	check := func(when string) {
		t.Helper()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := mappedOf(dir, "/a/"); err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("%s: %d values, %v:\n%.300q", when, len(got), err, got)
		}
		s = openIn(t, dir)
	}
	check("as written")
	if err := s.Compact(t.Context(), at["/a/1"]); err != nil {
		t.Fatal(err)
	}
	check("after a compaction")
	write("/a/3", "small")
	want = []string{"/a/1=new", "/a/4=again", "/a/3=small"}
	check("after a write of what was there at the compaction")
	if _, err := mappedOf(dir, "/"); !errors.Is(err, boltkv.ErrInUse) {
		t.Errorf("of an open store: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// A file that is damaged is an error before the first value is visited.
func TestMappedDamaged(t *testing.T) {
	of := newSpecimen(t)
	dir := t.TempDir()
	path := filepath.Join(dir, boltkv.FileName)
	for at := 2 * pageSize; at < len(of.bytes); at += len(of.bytes)/20 + 1 {
		damaged := []byte(string(of.bytes))
		damaged[at] ^= 0x55
		if err := os.WriteFile(path, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := mappedOf(dir, "/")
		var corrupt *kv.CorruptError
		if err == nil && !sameContent(t, dir, got) || err != nil && (!errors.As(err, &corrupt) || len(got) > 0) {
			t.Errorf("byte %d: %d values, %v", at, len(got), err)
		}
	}
	if _, err := mappedOf(t.TempDir(), "/"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("of an empty folder: %v", err)
	}
}

// sameContent reports whether a store opens and has the same number of values, as after damage in an
// unused part.
func sameContent(t *testing.T, dir string, got []string) bool {
	t.Helper()
	s, err := boltkv.Open(dir, boltkv.Options{})
	if err != nil {
		return false
	}
	defer s.Close()
	page, err := s.List(t.Context(), kv.Range{Prefix: "/"})
	return err == nil && len(page.Records) == len(got)
}
