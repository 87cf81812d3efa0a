package revision

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"main":     "{main  false}",
		"a..b":     "{a b false}",
		"a...b":    "{a b true}",
		"v1.0..":   "{v1.0 HEAD false}",
		"...topic": "{HEAD topic true}",
		"HEAD~3":   "{HEAD~3  false}",
		"":         "error",
		"-x":       "error",
		"a..-x":    "error",
		"a b":      "error",
	} {
		got := "error"
		if r, err := Parse(text); err == nil {
			got = fmt.Sprint(r)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// repository has three commits on main, and a branch from the first one.
func repository(t *testing.T) {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Chdir(t.TempDir())
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q", "-b", "main")
	write("config/a.yaml", "one")
	write("config/gone/b c.yaml", "b\n")
	write("config/notes.txt", "not a manifest")
	write(".gitignore", "ignored.yaml\n")
	git("add", ".")
	git("commit", "-q", "-m", "1")
	git("tag", "first")
	git("checkout", "-q", "-b", "topic")
	write("config/topic.yaml", "topic")
	git("add", ".")
	git("commit", "-q", "-m", "topic")
	git("checkout", "-q", "main")
	write("config/a.yaml", "two")
	git("rm", "-q", "-r", "config/gone")
	git("commit", "-q", "-a", "-m", "2")
	write("config/a.yaml", "three")
	write("config/untracked.yaml", "")
	write("config/ignored.yaml", "ignored")
}

func TestFiles(t *testing.T) {
	for _, tt := range []struct{ name, revision, path, old, now string }{
		{"the working tree", "HEAD", ".", "config/a.yaml=two", "config/a.yaml=three config/untracked.yaml="},
		{"an earlier commit", "first", "config", "config/a.yaml=one config/gone/b c.yaml=b", "config/a.yaml=three config/untracked.yaml="},
		{"two commits", "first..HEAD", ".", "config/a.yaml=one config/gone/b c.yaml=b", "config/a.yaml=two"},
		{"two branches", "main..topic", ".", "config/a.yaml=two", "config/a.yaml=one config/gone/b c.yaml=b config/topic.yaml=topic"},
		{"a branch since its fork", "main...topic", ".", "config/a.yaml=one config/gone/b c.yaml=b", "config/a.yaml=one config/gone/b c.yaml=b config/topic.yaml=topic"},
		{"a file", "first", "config/a.yaml", "config/a.yaml=one", "config/a.yaml=three"},
		{"a file of another name", "first", "config/notes.txt", "config/notes.txt=not a manifest", "config/notes.txt=not a manifest"},
		{"a removed folder", "first", "config/gone", "config/gone/b c.yaml=b", ""},
		{"a removed file", "first", "config/gone/b c.yaml", "config/gone/b c.yaml=b", ""},
		{"an ignored file by its name", "HEAD", "config/ignored.yaml", "", "config/ignored.yaml=ignored"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			repository(t)
			r, err := Parse(tt.revision)
			if err != nil {
				t.Fatal(err)
			}
			old, now, err := r.Files(t.Context(), []string{tt.path}, func(name string) bool { return filepath.Ext(name) == ".yaml" })
			if err != nil {
				t.Fatal(err)
			}
			if got := list(old); got != tt.old {
				t.Errorf("old %q, want %q", got, tt.old)
			}
			if got := list(now); got != tt.now {
				t.Errorf("new %q, want %q", got, tt.now)
			}
		})
	}
}

func list(files []File) string {
	var all []string
	for _, f := range files {
		all = append(all, filepath.ToSlash(f.Name)+"="+strings.TrimSpace(string(f.Data)))
	}
	return strings.Join(all, " ")
}

// Paths are relative to the current folder, and an absolute path stays absolute.
func TestFilesBelow(t *testing.T) {
	repository(t)
	top, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("config")
	for path, want := range map[string]string{
		".": "a.yaml=one gone/b c.yaml=b", "../config": "../config/a.yaml=one ../config/gone/b c.yaml=b",
		filepath.Join(top, "config", "a.yaml"): filepath.ToSlash(top) + "/config/a.yaml=one",
	} {
		old, _, err := Range{Old: "first"}.Files(t.Context(), []string{path}, func(name string) bool { return filepath.Ext(name) == ".yaml" })
		if got := list(old); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", path, got, err, want)
		}
	}
}

// A hook of git has variables for its own folder.
func TestFilesInAHook(t *testing.T) {
	repository(t)
	t.Setenv("GIT_DIR", ".git")
	t.Setenv("GIT_INDEX_FILE", ".git/another")
	old, _, err := Range{Old: "first"}.Files(t.Context(), []string{"config"}, func(name string) bool { return true })
	if err != nil || len(old) != 3 {
		t.Errorf("%d files, %v, want 3", len(old), err)
	}
}

func TestErrors(t *testing.T) {
	for _, tt := range []struct{ revision, path, want string }{
		{"nope", ".", `unknown revision "nope" in the repository of .: fetch it first`},
		{"HEAD..nope", ".", `unknown revision "nope"`},
		{"HEAD", "nothing", "nothing: no such file or folder, neither in HEAD nor in the working tree"},
		{"HEAD", os.TempDir(), "is not in a git repository"},
	} {
		repository(t)
		r, err := Parse(tt.revision)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err = r.Files(t.Context(), []string{tt.path}, func(string) bool { return true }); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s %s: %v, want %s", tt.revision, tt.path, err, tt.want)
		}
	}
	t.Setenv("PATH", t.TempDir())
	if _, _, err := (Range{Old: "HEAD"}).Files(t.Context(), []string{"."}, func(string) bool { return true }); err == nil || !strings.Contains(err.Error(), "the program git was not found: install it") {
		t.Errorf("%v, want that git is missing", err)
	}
}
