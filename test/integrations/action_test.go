package integrations

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/anykind/anykind/test/program"
)

// workspace is a repository with a workflow that uses the action three times, and two commits.
const workspace = `
-- .github/workflows/check.yaml --
on: push
jobs:
  check:
    runs-on: ubuntu-latest
    steps:
    - uses: actions/checkout@v5
    - id: built
      uses: anykind/anykind@main
      with: {paths: config/valid.yaml}
    - id: found
      uses: anykind/anykind@main
      with: {since: HEAD~1, args: "--namespace\nprod", output: text, paths: "config\nother folder\n"}
    - id: invalid
      uses: anykind/anykind@main
-- config/valid.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: valid
-- other folder/valid.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: valid
-- config/changed.yaml --
apiVersion: v1
kind: Namespace
metadata:
  name: changed
-- invalid.yaml --
apiVersion: v1
kind: ConfigMap
metadata:
  name: invalid
data:
  c d: e
`

// setupGo replaces actions/setup-go. The original downloads Go, and this one uses the Go in PATH. The action must set both
// inputs.
const setupGo = `
-- action.yml --
name: setup-go
description: Require the Go in PATH
inputs:
  go-version-file: {description: a go.mod}
  cache-dependency-path: {description: a go.sum}
runs:
  using: composite
  steps:
  - shell: bash
    env:
      MOD: ${{ inputs.go-version-file }}
      SUM: ${{ inputs.cache-dependency-path }}
    run: |
      grep '^module github.com/anykind/anykind$' "$MOD"
      grep -c . "$SUM"
      go version
`

// A step is one that act has run, of the workflow or of an action that it uses.
type step struct{ result, output string }

// The published act runs all steps of the action on this machine. The first use finds no anykind in PATH and builds it from the
// files of the repository. The others find that one.
func TestAction(t *testing.T) {
	steps, code := act(t)
	if code != 1 {
		t.Errorf("exit code %d, want 1: the last step fails", code)
	}
	for _, tt := range []struct{ id, result, output string }{
		{"built/find", "success", `^$`},
		{"built/1/0", "success", `^module github.com/anykind/anykind\s`},
		{"built/2", "success", ``},
		{"built/check", "success", `1 object in 1 file: 1 accepted, 0 refused$`},
		{"found/find", "success", `/anykind/anykind$`},
		{"found/check", "success", `2 objects in 2 files: 2 accepted, 0 refused, 1 unchanged$`},
		{"invalid/find", "success", `/anykind/anykind$`},
		{"invalid/check", "failure", `::error file=invalid.yaml,line=6,col=3,title=ConfigMap default/invalid::data\[c d\]`},
	} {
		got := steps[tt.id]
		delete(steps, tt.id)
		if got.result != tt.result || !regexp.MustCompile(tt.output).MatchString(strings.TrimSpace(got.output)) {
			t.Errorf("step %s: %q, want %q and output that matches %s\n%s", tt.id, got.result, tt.result, tt.output, got.output)
		}
	}
	for id := range steps {
		if strings.Contains(id, "/") && id != "built/1" {
			t.Errorf("step %s is unexpected", id)
		}
	}
}

// act runs the workflow with the published act in an environment without anykind, and returns its steps and the exit code.
func act(t *testing.T) (map[string]step, int) {
	t.Helper()
	path, err := program.Act()
	must(t, err)
	home, work := t.TempDir(), t.TempDir()
	env := environment(t, home)
	write(t, filepath.Join(home, "setup-go"), setupGo)
	write(t, work, workspace)
	for _, args := range []string{
		"init -q", "add .github config/valid.yaml", "commit -q -m 1", "add .", "commit -q -m 2",
	} {
		output(t, exec.Command("git", append([]string{"-C", work, "-c", "user.name=a", "-c", "user.email=a@example.com"}, strings.Fields(args)...)...), env)
	}
	cmd := exec.CommandContext(t.Context(), path, "push", "--json", "--directory", work, "--no-cache-server",
		"--platform", "ubuntu-latest=-self-hosted",
		"--local-repository", "actions/setup-go@v5="+filepath.Join(home, "setup-go"),
		"--local-repository", "anykind/anykind@main="+repository(t, env))
	cmd.Env = append(env, "ACT_DISABLE_VERSION_CHECK=1")
	cmd.Dir = home
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	steps := stepsIn(t, string(out))
	if t.Failed() || len(steps) == 0 {
		t.Fatalf("%v\n%s", err, out)
	}
	return steps, cmd.ProcessState.ExitCode()
}

// stepsIn reads the log of act. The key is the ID of the step, or its index, after that of the step that uses its action.
func stepsIn(t *testing.T, log string) map[string]step {
	t.Helper()
	steps := map[string]step{}
	for d := json.NewDecoder(strings.NewReader(log)); ; {
		var line struct {
			Message string   `json:"msg"`
			Stage   string   `json:"stage"`
			ID      []string `json:"stepID"`
			Result  string   `json:"stepResult"`
			Output  bool     `json:"raw_output"`
		}
		if err := d.Decode(&line); errors.Is(err, io.EOF) {
			return steps
		} else if err != nil {
			t.Fatalf("%v\n%s", err, log)
		}
		id := strings.Join(line.ID, "/")
		s := steps[id]
		switch {
		case line.Stage != "Main":
			continue
		case line.Output:
			s.output += line.Message
		case line.Result != "":
			s.result = line.Result
		}
		steps[id] = s
	}
}

// environment returns the environment of this process with another home, without anykind in PATH. Go has the caches of
// this machine.
func environment(t *testing.T, home string) []string {
	t.Helper()
	paths := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "anykind"))
		return err == nil
	})
	env := append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+filepath.Join(home, ".cache"), "XDG_CONFIG_HOME="+filepath.Join(home, ".config"),
		"PATH="+strings.Join(paths, string(filepath.ListSeparator)), "GIT_CONFIG_GLOBAL="+os.DevNull)
	caches := strings.Fields(output(t, exec.Command("go", "env", "GOCACHE", "GOMODCACHE", "GOPATH"), nil))
	return append(env, "GOCACHE="+caches[0], "GOMODCACHE="+caches[1], "GOPATH="+caches[2], "GOFLAGS=-trimpath")
}

// repository copies the files of the repository that git knows or would add: act reads a whole folder into memory.
func repository(t *testing.T, env []string) string {
	t.Helper()
	top, err := program.Top()
	must(t, err)
	folder := t.TempDir()
	for name := range strings.SplitSeq(output(t, exec.Command("git", "-C", top, "ls-files", "-co", "--exclude-standard", "-z"), env), "\x00") {
		data, err := os.ReadFile(filepath.Join(top, name))
		if name == "" || errors.Is(err, os.ErrNotExist) {
			continue
		}
		must(t, err)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(folder, name), data, 0o644))
	}
	return folder
}

// write writes the files of an archive.
func write(t *testing.T, folder, archive string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(archive)).Files {
		name := filepath.Join(folder, filepath.FromSlash(f.Name))
		must(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must(t, os.WriteFile(name, f.Data, 0o644))
	}
}

// output runs a command that has to succeed.
func output(t *testing.T, cmd *exec.Cmd, env []string) string {
	t.Helper()
	var said strings.Builder
	cmd.Env, cmd.Stderr = env, &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args, err, out, said.String())
	}
	return string(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
