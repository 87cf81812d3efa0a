package boltkv_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/internal/store/boltkv"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/kvtest"
)

func TestOpenMakesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "some", "where")
	s := openIn(t, dir)
	defer func() { _ = s.Close() }()
	for path, want := range map[string]os.FileMode{
		filepath.Dir(dir):                   0o700,
		dir:                                 0o700,
		filepath.Join(dir, boltkv.FileName): 0o600,
	} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the directory has %v, %v; want one file", entries, err)
	}
}

func TestOpenRefusesADirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	if _, err := boltkv.Open(dir, boltkv.Options{}); !errors.Is(err, boltkv.ErrInUse) {
		t.Errorf("from the same process: %v", err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := func() string {
		child := exec.Command(exe)
		child.Env = append(os.Environ(), inUseDirVariable+"="+dir)
		out, _ := child.CombinedOutput()
		return strings.TrimSpace(string(out))
	}
	if got := other(); !strings.Contains(got, boltkv.ErrInUse.Error()) || !strings.Contains(got, dir) {
		t.Errorf("from another process: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := other(); got != "opened" {
		t.Errorf("after it was closed: %s", got)
	}
}

func inUseChild(dir string) {
	s, err := boltkv.Open(dir, boltkv.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("opened")
	_ = s.Close()
	os.Exit(0)
}

func TestOpenRefusesWhatItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if _, err := boltkv.Open(dir, boltkv.Options{}); err == nil || !strings.Contains(err.Error(), "not a directory") {
			t.Errorf("%s: %v", dir, err)
		}
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if probe := os.WriteFile(filepath.Join(dir, "probe"), nil, 0o600); probe == nil {
		// Root may write anywhere but here.
		dir = "/sys"
	}
	for _, dir := range []string{dir, filepath.Join(dir, "below")} {
		if _, err := boltkv.Open(dir, boltkv.Options{}); !errors.Is(err, boltkv.ErrNotWritable) || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestOpenRefusesANewerFormat(t *testing.T) {
	dir := t.TempDir()
	if err := openIn(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	editBolt(t, dir, func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("anykind")).Put([]byte("format"), []byte{0, 0, 0, 4})
	})
	var format *boltkv.FormatError
	if _, err := boltkv.Open(dir, boltkv.Options{}); !errors.As(err, &format) || format.Format != 4 || format.Supported != 3 {
		t.Errorf("got error %v", err)
	}
}

// A file has the first format until it has a note, so that earlier versions can read it.
func TestNotesChangeTheFormat(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	format := func() (found byte) {
		editBolt(t, dir, func(tx *bolt.Tx) error {
			found = tx.Bucket([]byte("anykind")).Get([]byte("format"))[3]
			return nil
		})
		return found
	}
	for i, note := range [][]byte{nil, []byte("note"), nil} {
		if _, err := s.Commit(t.Context(), kv.Write{Key: fmt.Sprint("/", i), Value: []byte("value"), Note: note}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := format(), byte(min(i+1, 2)); got != want {
			t.Errorf("after write %d the format is %d, want %d", i, got, want)
		}
		s = openIn(t, dir)
	}
	defer s.Close()
	var notes []string
	for batch, err := range s.Watch(t.Context(), "/", 1) {
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range batch.Events {
			notes = append(notes, string(e.Note))
		}
		if batch.Revision == 4 {
			break
		}
	}
	if got := fmt.Sprintf("%q", notes); got != `["" "note" ""]` {
		t.Errorf("the notes are %s", got)
	}
}

// editBolt changes the file of a store behind its back.
func editBolt(t *testing.T, dir string, edit func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(dir, boltkv.FileName), 0o600, &bolt.Options{NoFreelistSync: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(edit), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestCloseLeavesNothingBehind(t *testing.T) {
	s := openNew(t)
	kvtest.Fill(t, s, []byte("v"), 0, 100)
	if err := s.Compact(t.Context(), 50); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	if strings.Contains(string(stacks), "boltkv.(*Store)") {
		t.Errorf("a goroutine is left:\n%s", stacks)
	}
}

func TestRefusedWritesLeaveNoTrace(t *testing.T) {
	dir := t.TempDir()
	s := openIn(t, dir)
	if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("v")}); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, boltkv.FileName))
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := s.Commit(t.Context(), kv.Write{Key: "/a", Value: []byte("w"), Expect: 99}); err == nil {
			t.Fatal("a write that expects the wrong revision happened")
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.ReadFile(filepath.Join(dir, boltkv.FileName))
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("conflicts wrote to the file")
	}
}
