package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/anykind/anykind/internal/object/kubernetes"
)

// KubeAPIServerOf builds the published kube-apiserver of any version of Kubernetes, such as v1.34.4, if necessary, and
// returns its path. This module requires one version; for another, a module of its own is generated in .build. Its
// sums are those of the checksum database.
func KubeAPIServerOf(version string) (string, error) {
	if version == kubernetes.Version {
		return KubeAPIServer()
	}
	top, err := Top()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(top, ".build", "kube-apiserver-"+version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(dir, "lock")).Lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	file := filepath.Join(dir, "go.mod")
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		content, err := moduleOf(dir, version)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return "", err
		}
	} else if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "kube-apiserver"+exeSuffix())
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	_, err = goCommand(dir, "build", "-mod=mod", "-trimpath", "-ldflags", "-s -w "+versionFlagsOf(version, major, minor), "-o", program,
		"k8s.io/kubernetes/cmd/kube-apiserver")
	return program, err
}

// moduleOf returns the go.mod of a module that requires a version of Kubernetes. The go.mod of Kubernetes replaces the modules of
// its own repository by folders that the published module lacks. They are published as v0, with the same minor version
// and patch.
func moduleOf(dir, version string) ([]byte, error) {
	out, err := goCommand(dir, "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	if err != nil {
		return nil, err
	}
	var downloaded struct{ GoMod string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return nil, err
	}
	if out, err = goCommand(dir, "mod", "edit", "-json", downloaded.GoMod); err != nil {
		return nil, err
	}
	var file struct {
		Go      string
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(out, &file); err != nil {
		return nil, err
	}
	published := "v0." + strings.TrimPrefix(version, "v1.")
	content := fmt.Appendf(nil, "module released\n\ngo %s\n\nrequire k8s.io/kubernetes %s\n\n", file.Go, version)
	for _, r := range file.Replace {
		content = fmt.Appendf(content, "replace %s => %s %s\n", r.Old.Path, r.Old.Path, published)
	}
	return content, nil
}

// goCommand runs go in a folder, and returns its output.
func goCommand(dir string, args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	var said strings.Builder
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, said.String())
	}
	return out, nil
}
