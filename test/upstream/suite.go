package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// tested is the module of the tests, and packages are its packages with tests.
const tested = "k8s.io/apiextensions-apiserver"

var packages = []string{tested + "/test/integration", tested + "/test/integration/conversion"}

// replaced is the file that starts the server of the tests.
const replaced = "test/integration/fixtures/server.go"

// A suite is a copy of the tests, ready to run.
type suite struct {
	dir  string // of the copy and its files
	from string // folder of the published source
}

// prepare makes the copy.
func prepare(dir, fixture string) (*suite, error) {
	from, err := published()
	if err != nil {
		return nil, err
	}
	s := &suite{dir: dir, from: from}
	if err := os.RemoveAll(s.dir); err != nil {
		return nil, err
	}
	ours, err := os.ReadFile(fixture)
	if err != nil {
		return nil, err
	}
	copied := filepath.Join(s.dir, "ours")
	if err := copyTree(copied, from); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(copied, filepath.FromSlash(replaced)), ours, 0o644); err != nil {
		return nil, err
	}
	return s, s.writeModule()
}

// published returns the folder of the published source.
func published() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", tested+"@"+version()).Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); jsonErr != nil {
		return "", fmt.Errorf("downloading %s: %w", tested, err)
	}
	if m.Error != "" {
		return "", fmt.Errorf("downloading %s: %s", tested, m.Error)
	}
	return m.Dir, nil
}

// version returns the version of the tests in go.mod.
func version() string {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", tested).Output()
	if err != nil {
		return "latest"
	}
	return strings.TrimSpace(string(out))
}

// writeModule writes a go.mod with the requirements of this module, in which the copy replaces the
// tests.
func (s *suite) writeModule() error {
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), data, 0o644); err != nil {
			return err
		}
	}
	// Paths in a -modfile are relative to the module, not to the file.
	edit := exec.Command("go", "mod", "edit", "-replace", tested+"=./"+path.Join("upstream", filepath.ToSlash(s.dir), "ours"), filepath.Join(s.dir, "go.mod"))
	if said, err := edit.CombinedOutput(); err != nil {
		return fmt.Errorf("replacing %s: %w\n%s", tested, err, said)
	}
	return nil
}

// copyTree makes a writable copy of files: the module cache is read-only.
func copyTree(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}
