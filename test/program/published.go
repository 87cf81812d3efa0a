package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Module is a published Go module, in the module cache.
type Module struct{ Path, Version, Dir string }

// Published returns the modules that the go.mod in a folder of the repository requires, by path, or
// only the named ones. It downloads missing modules, and verifies each against go.sum.
func Published(folder string, only ...string) (map[string]Module, error) {
	top, err := Top()
	if err != nil {
		return nil, err
	}
	download := exec.Command("go", append([]string{"mod", "download", "-json"}, only...)...)
	download.Dir = filepath.Join(top, filepath.FromSlash(folder))
	download.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	var said strings.Builder
	download.Stderr = &said
	out, failed := download.Output()
	modules := map[string]Module{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var m struct {
			Module
			Error string
		}
		if err := d.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("what go mod download says: %w", err)
		}
		if m.Error != "" {
			said.WriteString(m.Error)
		}
		modules[m.Path] = m.Module
	}
	if failed != nil {
		return nil, fmt.Errorf("downloading published modules, in %s: %w: %s", download.Dir, failed, said.String())
	}
	return modules, nil
}

// CopyTree makes a writable copy of the files of a module. The module cache drops the executable bit:
// scripts get it back.
func CopyTree(to, from string) error {
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
		mode := fs.FileMode(0o644)
		if bytes.HasPrefix(data, []byte("#!")) {
			mode = 0o755
		}
		return os.WriteFile(target, data, mode)
	})
}
