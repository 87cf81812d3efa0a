// Package assets fills a folder with the programs that a test finds by KUBEBUILDER_ASSETS.
//
// kube-apiserver and etcd are this program, which behaves by the name it is called by. kubectl is
// the one that is found, or is built. The package does not know what the programs do.
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

// A Folder is where the programs go.
type Folder struct {
	Dir string
	// Program is the file of this program.
	Program string
	// Copy makes copies. Otherwise links are made, so that the folder has the newest program.
	Copy bool
}

// Ours are the names under which this program is there.
var Ours = []string{"kube-apiserver", "etcd"}

// Fill puts this program into the folder, in the place of what is there.
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

// kubectl is its name.
const kubectl = "kubectl"

// Kubectl puts the kubectl that is found into the folder, unless there is one, and returns which
// that is: an error that is exec.ErrNotFound if there is none.
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

// put makes name the program in file.
func (f Folder) put(name, file string) error {
	at := filepath.Join(f.Dir, name)
	same, err := sameFile(at, file)
	if err != nil || same && !f.Copy {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if !f.Copy && os.Symlink(file, at) == nil { // not every system has links
		return nil
	}
	return copyFile(at, file)
}

// sameFile reports whether both are one program.
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

// source is a program that is kubectl.
const source = `package main

import (
	"os"

	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
)

func main() { os.Exit(cli.Run(cmd.NewDefaultKubectlCommand())) }
`

// BuildKubectl builds a kubectl of a release, such as v0.37.1, with Go, and puts it into the folder.
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
