package plugin

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	first  = "kubectl-anykind"
	second = "kubectl_complete-anykind"
)

// write creates an executable file.
func write(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

// words formats actions, without the folder.
func words(actions []Action, err error) string {
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, a := range actions {
		out = append(out, filepath.Base(a.Path)+" "+a.What)
	}
	return strings.Join(out, ", ")
}

// links formats the files of a folder, with the targets of links.
func links(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		name := e.Name()
		if target, err := os.Readlink(filepath.Join(dir, name)); err == nil {
			name += "=" + target
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestInstall(t *testing.T) {
	const created, there, removed = first + " created, " + second + " created", first + " unchanged, " + second + " unchanged", first + " removed, " + second + " removed"
	for _, tt := range []struct {
		name string
		// prepare returns the program in top, and the folder of the names if it is another one.
		prepare          func(top string) (program, dir string)
		install, links   string
		again, uninstall string
		after            string
	}{
		{"beside the program", func(top string) (string, string) {
			return write(t, filepath.Join(top, "bin", "anykind")), ""
		}, created, "anykind " + first + "=anykind " + second + "=" + first, there, removed, "anykind"},
		{"in another folder", func(top string) (string, string) {
			return write(t, filepath.Join(top, "opt", "anykind")), filepath.Join(top, "bin")
		}, created, first + "=TOP/opt/anykind " + second + "=" + first, there, removed, ""},
		{"in the place of links to a program that is gone", func(top string) (string, string) {
			link(t, filepath.Join(top, "opt", "anykind"), filepath.Join(top, "bin", first))
			link(t, first, filepath.Join(top, "bin", second))
			return write(t, filepath.Join(top, "new", "anykind")), filepath.Join(top, "bin")
		}, first + " replaced, " + second + " replaced", first + "=TOP/new/anykind " + second + "=" + first, there, removed, ""},
		{"as krew has it: its link stays", func(top string) (string, string) {
			link(t, write(t, filepath.Join(top, "store", "anykind", "v1", "anykind")), filepath.Join(top, "bin", first))
			return filepath.Join(top, "bin", first), ""
		}, first + " unchanged, " + second + " created", first + "=TOP/store/anykind/v1/anykind " + second + "=" + first, there, first + " left, " + second + " removed", first + "=TOP/store/anykind/v1/anykind"},
		{"as the page has it: the program itself has the name", func(top string) (string, string) {
			return write(t, filepath.Join(top, "bin", first)), ""
		}, first + " unchanged, " + second + " created", first + " " + second + "=" + first, there, first + " left, " + second + " removed", first},
		{"called by a name that was installed", func(top string) (string, string) {
			write(t, filepath.Join(top, "bin", "anykind"))
			link(t, "anykind", filepath.Join(top, "bin", first))
			return filepath.Join(top, "bin", first), ""
		}, first + " unchanged, " + second + " created", "anykind " + first + "=anykind " + second + "=" + first, there, removed, "anykind"},
		{"over another program", func(top string) (string, string) {
			if err := os.WriteFile(write(t, filepath.Join(top, "bin", second)), []byte("another"), 0o755); err != nil {
				t.Fatal(err)
			}
			return write(t, filepath.Join(top, "bin", "anykind")), ""
		}, "TOP/bin/" + second + " exists and is no link to this program: remove it, or name another folder", "anykind " + second,
			"TOP/bin/" + second + " exists and is no link to this program: remove it, or name another folder", second + " left", "anykind " + second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := t.TempDir()
			program, dir := tt.prepare(top)
			f := Folder{Dir: dir, Program: program, Names: []string{first, second}}
			if dir == "" {
				f.Dir = filepath.Dir(program)
			}
			f.Program = f.follow(program)
			short := func(s string) string { return strings.ReplaceAll(s, top, "TOP") }
			if got := short(words(f.Install())); got != tt.install {
				t.Errorf("install: %s, want %s", got, tt.install)
			}
			if got := short(links(t, f.Dir)); got != tt.links {
				t.Errorf("links: %s, want %s", got, tt.links)
			}
			if got := short(words(f.Install())); got != tt.again {
				t.Errorf("install again: %s, want %s", got, tt.again)
			}
			if got := short(words(f.Uninstall())); got != tt.uninstall {
				t.Errorf("uninstall: %s, want %s", got, tt.uninstall)
			}
			if got := short(links(t, f.Dir)); got != tt.after {
				t.Errorf("after: %s, want %s", got, tt.after)
			}
		})
	}
}

// Without links, the names are copies, which a later version replaces and uninstalls. The program is
// this test binary, which belongs to the same module.
func TestCopies(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := Folder{Dir: t.TempDir(), Program: program, Names: []string{first}, Copy: true}
	for i, want := range []string{first + " created", first + " replaced"} {
		if got := words(f.Install()); got != want {
			t.Errorf("install %d: %s, want %s", i+1, got, want)
		}
	}
	if info, err := os.Lstat(f.path(first)); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o755 {
		t.Errorf("it is %v, %v", info, err)
	}
	if got, want := words(f.Uninstall()), first+" removed"; got != want {
		t.Errorf("uninstall: %s, want %s", got, want)
	}
	write(t, f.path(first))
	if got, want := words(f.Uninstall()), first+" left"; got != want {
		t.Errorf("uninstall of another program: %s, want %s", got, want)
	}
}

func TestPath(t *testing.T) {
	top := t.TempDir()
	early, late := filepath.Join(top, "early"), filepath.Join(top, "late")
	write(t, filepath.Join(late, "anykind"))
	write(t, filepath.Join(early, second))
	f := Folder{Dir: late, Program: filepath.Join(late, "anykind"), Names: []string{first, second}, Path: []string{"", early}}
	if f.InPath() {
		t.Error("it is in PATH")
	}
	f.Path = append(f.Path, late+"/.", early)
	if !f.InPath() {
		t.Error("it is not in PATH")
	}
	if got, want := fmt.Sprint(f.Overshadowed()), "map["+second+":"+filepath.Join(early, second)+"]"; got != want {
		t.Errorf("overshadowed: %s, want %s", got, want)
	}
	slices.Reverse(f.Path)
	f.Path = f.Path[1:]
	if got := f.Overshadowed(); len(got) > 0 {
		t.Errorf("overshadowed: %s, but it comes first", got)
	}
}

// The program is found by the path of its command: the path from the system may contain a version.
func TestHere(t *testing.T) {
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	top := t.TempDir()
	link(t, own, filepath.Join(top, "anykind"))
	t.Setenv("PATH", top)
	for _, called := range []string{"anykind", filepath.Join(top, "anykind")} {
		f, err := Here(called, "", first)
		if err != nil || f.Program != filepath.Join(top, "anykind") || f.Dir != top {
			t.Errorf("called as %s: %+v, %v", called, f, err)
		}
	}
	write(t, filepath.Join(top, "another"))
	if f, err := Here("another", "there", first); err != nil || f.Program != own || !strings.HasSuffix(f.Dir, "/there") {
		t.Errorf("called as another program: %+v, %v", f, err)
	}
}
