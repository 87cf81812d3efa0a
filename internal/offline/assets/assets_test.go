package assets

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestFill(t *testing.T) {
	from := t.TempDir()
	program := filepath.Join(from, "anykind")
	write := func(file, content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(program, "first")
	linked, copied := Folder{Dir: filepath.Join(from, "a", "linked"), Program: program}, Folder{Dir: filepath.Join(from, "copied"), Program: program, Copy: true}
	for range 2 { // the second time all files exist
		for _, f := range []Folder{linked, copied} {
			if err := f.Fill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(program, "second")
	for dir, want := range map[string]string{linked.Dir: "second", copied.Dir: "first"} {
		for _, name := range Ours {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s in %s is %q, %v", name, dir, got, err)
			}
		}
	}
}

func TestKubectl(t *testing.T) {
	f := Folder{Dir: t.TempDir()}
	t.Setenv("PATH", t.TempDir())
	if _, err := f.Kubectl(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("%v, although there is none", err)
	}
	at := filepath.Join(os.Getenv("PATH"), kubectl)
	if err := os.WriteFile(at, []byte("kubectl"), 0o755); err != nil {
		t.Fatal(err)
	}
	if found, err := f.Kubectl(); err != nil || found != at {
		t.Errorf("%s, %v", found, err)
	}
	if found, err := f.Kubectl(); err != nil || found != filepath.Join(f.Dir, kubectl) {
		t.Errorf("%s, %v: one that is there stays", found, err)
	}
}
