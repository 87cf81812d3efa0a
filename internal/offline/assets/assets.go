// Package assets installs the programs for tests that use KUBEBUILDER_ASSETS.
//
// kube-apiserver and etcd are this program, which acts by the name of its command. kubectl is an
// installed one, or is built. The package does not run the programs.
package assets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// A Folder is the folder of the programs.
type Folder struct {
	Dir string
	// Program is the path of this program.
	Program string
	// Copy makes copies instead of symbolic links. Links follow an update of the program.
	Copy bool
}

// Ours are the names for this program.
var Ours = []string{"kube-apiserver", "etcd"}

// Fill installs this program, and replaces existing files.
func (f Folder) Fill() error {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return err
	}
	for _, name := range Ours {
		if err := f.put(name, f.Program); err != nil {
			return err
		}
	}
	return nil
}

// kubectl is the name of the command.
const kubectl = "kubectl"

// Kubectl installs the kubectl of PATH, unless the folder has one, and returns its path. The error
// is exec.ErrNotFound if there is none.
func (f Folder) Kubectl() (found string, err error) {
	at := filepath.Join(f.Dir, kubectl)
	if _, err := os.Stat(at); err == nil {
		return at, nil
	}
	if found, err = exec.LookPath(kubectl); err != nil {
		return "", err
	}
	if found, err = filepath.Abs(found); err != nil {
		return "", err
	}
	return found, f.put(kubectl, found)
}

// put installs file under a name.
func (f Folder) put(name, file string) error {
	at := filepath.Join(f.Dir, name)
	same, err := sameFile(at, file)
	if err != nil || same && !f.Copy {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !f.Copy && os.Symlink(file, at) == nil { // not every system supports links
		return nil
	}
	return copyFile(at, file)
}

// sameFile reports whether both paths are the same file.
func sameFile(a, b string) (bool, error) {
	of, err := os.Stat(b)
	if err != nil {
		return false, err
	}
	found, err := os.Stat(a)
	return err == nil && os.SameFile(found, of), nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// source is the main package of kubectl.
const source = `package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
`

// BuildKubectl builds the kubectl of a release, such as v0.36.0, with Go, and installs it.
func (f Folder) BuildKubectl(ctx context.Context, release string) error {
	dir, err := os.MkdirTemp("", "kubectl")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(source), 0o644); err != nil {
		return err
	}
	at, err := filepath.Abs(filepath.Join(f.Dir, kubectl))
	if err != nil {
		return err
	}
	for _, args := range [][]string{
		{"mod", "init", "kubectl"},
		{"get", "k8s.io/kubectl@" + release, "k8s.io/component-base@" + release},
		{"mod", "tidy"},
		{"build", "-trimpath", "-ldflags", "-s -w", "-o", at, "."},
	} {
		c := exec.CommandContext(ctx, "go", args...)
		c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
	}
	return nil
}
