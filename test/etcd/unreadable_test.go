package etcd

import (
	"bytes"
	"compress/gzip"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/anykind/anykind/test/program"
)

// A truncated, a damaged and a foreign file fail each command that reads snapshots, with one line that has the name of the file and the
// reason.
func TestUnreadableSnapshot(t *testing.T) {
	m := StartMember(t)
	_, writer := run(t, "--etcd-servers", m.Client)
	write(t, writer, writer, "before")
	whole, err := os.ReadFile(m.snapshot(t))
	if err != nil {
		t.Fatal(err)
	}
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	foreign := filepath.Join(dir, "foreign")
	db, err := bolt.Open(foreign, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(func(tx *bolt.Tx) error { _, err := tx.CreateBucket([]byte("other")); return err }); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	if _, err := w.Write(whole); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	zeroed := func(from, to int) []byte {
		damaged := bytes.Clone(whole)
		clear(damaged[from:to])
		return damaged
	}
	changed := bytes.Clone(whole)
	value := bytes.LastIndex(changed, []byte("9007199254740991"))
	if value < 0 {
		t.Fatal("the snapshot has no value of a custom object")
	}
	changed[value] = '8'
	const neither = "is no backup of anykind and no snapshot of etcd, or is damaged: "
	for _, tt := range []struct {
		name    string
		content []byte // nil for a file that exists, or is missing
		want    string
		only    string // restore: a server that opens the file does not read it as a whole
	}{
		{"missing", nil, "no such file or directory", ""},
		{"empty", []byte{}, neither, ""},
		{"text", []byte("apiVersion: v1\nkind: List\n"), neither, ""},
		{"compressed", compressed.Bytes(), neither, ""},
		{"foreign", nil, "foreign", ""},
		{"one page", whole[:page], neither, ""},
		{"half", whole[:len(whole)/2], neither, ""},
		{"without a page", whole[:len(whole)-page], neither, ""},
		{"without meta pages", zeroed(0, 2*page), neither, ""},
		{"with meta pages only", zeroed(2*page, len(whole)), neither, ""},
		{"changed", changed, "its content does not match the checksum at its end", "restore"},
	} {
		file := filepath.Join(dir, tt.name)
		if tt.content != nil {
			if err := os.WriteFile(file, tt.content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		for _, args := range [][]string{
			{"serve", "--open", file, "--data-dir", filepath.Join(dir, "opened"), "--secure-port", "0"},
			{"serve", "--restore", file, "--data-dir", filepath.Join(dir, "restored"), "--secure-port", "0"},
			{"get", "configmaps", "--from", file},
		} {
			if tt.only != "" && args[1] != "--"+tt.only {
				continue
			}
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // a server that accepts the file would run on
			defer cancel()
			cmd := exec.CommandContext(ctx, anykind, args...)
			var failure strings.Builder
			cmd.Stderr = &failure
			out, _ := cmd.Output() // its code is compared
			said := failure.String()
			if cmd.ProcessState.ExitCode() != 1 || len(out) > 0 || strings.Count(said, "\n") != 1 || !strings.HasPrefix(said, "anykind: ") ||
				!strings.Contains(said, file) || !strings.Contains(said, tt.want) {
				t.Errorf("%s of a file %q ended with %d and wrote %s%s", args[:2], tt.name, cmd.ProcessState.ExitCode(), out, said)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "restored", "anykind.db")); err == nil {
			t.Errorf("a store was restored from the file %q", tt.name)
		}
	}
}
