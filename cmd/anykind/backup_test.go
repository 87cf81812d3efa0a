package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/anykind/anykind/internal/store/boltkv"
)

// A backup of a running server is served by --open, and replaces the objects of a stopped server.
func TestBackup(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	s := serving(t, "--data-dir", at("one"))
	s.connect(t, filepath.Join(at("one"), "admin.kubeconfig"))
	const maps = "/api/v1/namespaces/default/configmaps"
	s.ask(t, http.MethodPost, maps, `{"metadata":{"name":"before"}}`, http.StatusCreated)
	file := at("nightly.db")
	backup := func(args ...string) (string, error) {
		cmd, stderr := command(t, append([]string{"backup", file}, args...)...)
		out, err := cmd.Output()
		return string(out) + stderr.String(), err
	}
	out, err := backup("--kubeconfig", filepath.Join(at("one"), "admin.kubeconfig"))
	if err != nil || !strings.HasPrefix(out, file+" has ") {
		t.Fatalf("%s%v", out, err)
	}
	s.ask(t, http.MethodPost, maps, `{"metadata":{"name":"after"}}`, http.StatusCreated)

	opened := serving(t, "--data-dir", at("two"), "--open", file)
	opened.connect(t, filepath.Join(at("two"), "admin.kubeconfig"))
	opened.ask(t, http.MethodGet, maps+"/before", "", http.StatusOK)
	opened.ask(t, http.MethodGet, maps+"/after", "", http.StatusNotFound)
	opened.ask(t, http.MethodDelete, maps+"/before", "", http.StatusForbidden)
	// A server without a file of its own has no backups, and the file stays as it is.
	out, err = backup("--kubeconfig", filepath.Join(at("two"), "admin.kubeconfig"))
	if err == nil || !strings.Contains(out, "the server says: this store has no backups") {
		t.Errorf("%s%v", out, err)
	}
	opened.end(t)

	s.end(t)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at("one"), boltkv.FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	s = serving(t, "--data-dir", at("one"))
	s.connect(t, filepath.Join(at("one"), "admin.kubeconfig"))
	s.ask(t, http.MethodGet, maps+"/before", "", http.StatusOK)
	s.ask(t, http.MethodGet, maps+"/after", "", http.StatusNotFound)
	s.ask(t, http.MethodDelete, maps+"/before", "", http.StatusOK)
	s.end(t)
	left, err := filepath.Glob(at(".nightly*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
}

// ask sends a request and checks the code of the answer.
func (s *process) ask(t *testing.T, method, path, body string, want int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://"+s.address+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != want {
		t.Errorf("%s %s: %s", method, path, answer.Status)
	}
}

// end stops the process.
func (s *process) end(t *testing.T) {
	t.Helper()
	s.client.CloseIdleConnections()
	if err := s.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err != nil {
		t.Errorf("%v: %s", err, s.stderr)
	}
}
