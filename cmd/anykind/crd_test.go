package main

import (
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The exit code of crd lint is for CI.
func TestLint(t *testing.T) {
	const accepted, refused = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"},"spec":{
		"group":"example.com","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"n":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}}}}}]}}`, `"self"`
	for _, tt := range []struct {
		name, input    string
		args           []string
		code           int
		stdout, stderr string
	}{
		{"accepted", accepted, []string{"-"}, 0, "stdin: a.example.com: accepted", ""},
		{"refused", strings.ReplaceAll(accepted, `"self > 0"`, refused), []string{"-"}, exitFailed, "cel expression must evaluate to a bool", "problems found: 1"},
		{"as JSON", accepted, []string{"-o", "json", "-"}, 0, `"problems": 0`, ""},
		{"no definition", `{"kind":"ConfigMap"}`, []string{"-"}, exitFailed, "", "there is no CustomResourceDefinition"},
		{"no such file", "", []string{filepath.Join(t.TempDir(), "x.yaml")}, exitFailed, "", "no such file"},
		{"no file", "", nil, exitUsage, "", "needs a file"},
		{"no such output", "", []string{"-o", "xml", "-"}, exitUsage, "", "text or json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cmd, stderr := command(t, append([]string{"crd", "lint"}, tt.args...)...)
			cmd.Stdin = strings.NewReader(tt.input)
			stdout, err := cmd.Output()
			code := 0
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				code = exit.ExitCode()
			}
			if code != tt.code || !strings.Contains(string(stdout), tt.stdout) || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("exit code %d, want %d\n%s%s", code, tt.code, stdout, stderr)
			}
		})
	}
}
