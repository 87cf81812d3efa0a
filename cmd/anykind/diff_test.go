package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The exit code of crd diff says whether something breaks.
func TestDiff(t *testing.T) {
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"},"spec":{
		"group":"example.com","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}]}}`
	tighter := strings.Replace(definition, `"integer"`, `"integer","maximum":3`, 1)
	for _, tt := range []struct {
		name, old, now string
		args           []string
		code           int
		stdout         string
	}{
		{"the same", definition, definition, nil, 0, "1 definition: 0 breaking, 0 caution"},
		{"tighter", definition, tighter, nil, exitFailed, "breaking  v1 n: maximum changes from none to 3"},
		{"wider", tighter, definition, []string{"--all", "-o", "json"}, 0, `"change": "maximum-relaxed"`},
		{"nothing", `{"apiVersion":"v1","kind":"ConfigMap"}`, definition, nil, exitUnsure, ""},
		{"in no form", definition, definition, []string{"-o", "xml"}, exitUsage, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "new.json")
			if err := os.WriteFile(file, []byte(tt.now), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd, stderr := command(t, append([]string{"crd", "diff", "-", file}, tt.args...)...)
			cmd.Stdin = strings.NewReader(tt.old)
			stdout, err := cmd.Output()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			if code != tt.code || !strings.Contains(string(stdout), tt.stdout) {
				t.Errorf("exit code %d, want %d\n%s%s", code, tt.code, stdout, stderr)
			}
		})
	}
}

// crd try reads objects from one place, and says if it cannot.
func TestTry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"two places", []string{"--data-dir", "a", "--etcd-snapshot", "b", "-"}, exitUsage, "exclude each other"},
		{"no file", nil, exitUsage, "needs one file"},
		{"no definition", []string{"--etcd-snapshot", "b", "-"}, exitUnsure, "there is no CustomResourceDefinition"},
		{"no snapshot", []string{"--etcd-snapshot", "b", "new.yaml"}, exitUnsure, "no such file"},
		{"no data directory", []string{"--data-dir", "b", "new.yaml"}, exitUnsure, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd, stderr := command(t, append([]string{"crd", "try"}, tt.args...)...)
			cmd.Stdin = strings.NewReader(`{"apiVersion":"v1","kind":"ConfigMap"}`)
			const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"},"spec":{
				"group":"example.com","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
				"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`
			if err := os.WriteFile(filepath.Join(cmd.Dir, "new.yaml"), []byte(definition), 0o600); err != nil {
				t.Fatal(err)
			}
			err := cmd.Run()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tt.code || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("%v, want %d\n%s", err, tt.code, stderr)
			}
		})
	}
}
