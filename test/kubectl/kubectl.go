// Package kubectl builds the kubectl that the tests run.
//
// It is the published one, from the module in tools/kubectl, so that a test
// needs nothing installed and everybody's test runs the same client. The
// program is kept in .build at the top of the repository; Go's own cache makes
// building it again a matter of a fraction of a second.
package kubectl

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/rogpeppe/go-internal/lockedfile"
)

// Version is what the program says it is. It is the version of k8s.io/kubectl
// in tools/kubectl/go.mod with the major version Kubernetes gives it.
const Version = "v1.37.1"

// Build returns the path of the program, which it brings up to date. Several
// test processes may ask at once.
func Build() (string, error) {
	top, err := Top()
	if err != nil {
		return "", err
	}
	out := filepath.Join(top, ".build")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(out, "kubectl.lock")).Lock()
	if err != nil {
		return "", err
	}
	defer unlock()

	program := filepath.Join(out, "kubectl"+exeSuffix())
	build := exec.Command("go", "build", "-trimpath",
		"-ldflags", "-s -w -X k8s.io/component-base/version.gitVersion="+Version,
		"-o", program, ".")
	build.Dir = filepath.Join(top, "tools", "kubectl")
	// The race detector and the like are for the tests, not for kubectl.
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building kubectl in %s: %w\n%s", build.Dir, err, said)
	}
	return program, nil
}

// Top returns the top folder of the repository, from any folder below it.
func Top() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "tools", "kubectl", "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository: no folder above has tools/kubectl/go.mod")
		}
		dir = parent
	}
}

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
