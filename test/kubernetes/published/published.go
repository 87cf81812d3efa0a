// Package published finds the published source of Kubernetes, copies the parts that a run needs, and
// builds its programs.
//
// It knows the paths, and nothing about the tests.
package published

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/anykind/anykind/test/program"
)

// Module is the module with the tests.
const Module = "k8s.io/kubernetes"

// Folder returns the folder of the runners, from any folder below the top of the repository.
func Folder() (string, error) {
	top, err := program.Top()
	return filepath.Join(top, "test", "kubernetes"), err
}

// Source returns the folder of the published source.
func Source() (string, error) {
	modules, err := program.Published("test", Module)
	return modules[Module].Dir, err
}

// Copy copies files and folders of the published source, so that they become writable: the module
// cache is read-only.
func Copy(to, source string, paths ...string) error {
	for _, path := range paths {
		from := filepath.Join(source, filepath.FromSlash(path))
		err := filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(source, file)
			if err != nil {
				return err
			}
			if d.IsDir() {
				return os.MkdirAll(filepath.Join(to, rel), 0o755)
			}
			return copyFile(filepath.Join(to, rel), file)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Place copies a program to another path.
func Place(to, program string) error { return copyFile(to, program) }

func copyFile(to, from string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	// The module cache drops the executable bit. One file is meant not to have it.
	mode := fs.FileMode(0o755)
	if strings.Contains(from, "not-executable") {
		mode = 0o644
	}
	return os.WriteFile(to, data, mode)
}

// TestProgram builds the tests of a package as a program. The flags are those of the published
// programs, so that both share the build cache.
func TestProgram(out, dir, pkg string, flags ...string) error {
	args := append([]string{"test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o", out}, flags...)
	cmd := exec.Command("go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the tests of %s: %w\n%s", pkg, err, said)
	}
	return nil
}
