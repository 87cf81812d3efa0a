package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// One small package shows that the glue still matches the published code.
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds tests of Kubernetes, with most of its server")
	}
	if err := run(options{dir: t.TempDir(), packages: "dryrun", timeout: 5 * time.Minute}); err != nil {
		t.Error(err)
	}
}

// A copy has exactly one function that starts the server, and it is renamed.
func TestRenameStart(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("other.go", "package p\n\n// func StartTestServer( starts nothing here.\n")
	if err := renameStart(dir); err == nil {
		t.Error("nothing was renamed")
	}
	write("server.go", "package p\n\nfunc StartTestServer() {}\n\nfunc StartTestServerOrDie() { StartTestServer() }\n")
	if err := renameStart(dir); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "server.go"))
	if err != nil || !strings.Contains(string(data), "\nfunc startPublished() {}") || !strings.Contains(string(data), "{ StartTestServer() }") {
		t.Errorf("%s, %v", data, err)
	}
}
