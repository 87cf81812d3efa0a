// Package program builds the programs that the tests run: anykind, and the published kubectl,
// kube-apiserver, kube-scheduler, kube-controller-manager, sample-apiserver and etcd.
//
// Most published ones are built from this module, so tests need no installed programs, and use
// the same ones on every machine. They are stored in .build at the top of the repository. With Go's
// build cache, building one again takes a fraction of a second; the first build of kube-apiserver or
// kube-controller-manager takes minutes.
package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/anykind/anykind/internal/object/kubernetes"
)

var versionFlags = versionFlagsOf(kubernetes.Version, kubernetes.Major, kubernetes.Minor)

// versionFlagsOf returns the flags of the linker that set the version of a program of Kubernetes.
func versionFlagsOf(version, major, minor string) string {
	const at = "k8s.io/component-base/version."
	return "-X " + at + "gitVersion=" + version + " -X " + at + "gitMajor=" + major + " -X " + at + "gitMinor=" + minor
}

// Anykind builds anykind if necessary, and returns its path. It is built as `make build` does: the tag
// grpcnotrace leaves out the unused trace pages of grpc, and with them the templates for which the
// linker would keep every method.
func Anykind() (string, error) {
	return build("anykind", ".", "./cmd/anykind", "", "-tags", "grpcnotrace")
}

// Kubectl returns the path of the published kubectl.
func Kubectl() (string, error) { return published("kubectl") }

// KubeAPIServer returns the path of the published kube-apiserver.
func KubeAPIServer() (string, error) { return published("kube-apiserver") }

// KubeScheduler returns the path of the published kube-scheduler.
func KubeScheduler() (string, error) { return published("kube-scheduler") }

// SampleAPIServer returns the path of the published k8s.io/sample-apiserver.
func SampleAPIServer() (string, error) {
	return OfKubernetes("sample-apiserver", "k8s.io/sample-apiserver")
}

// KubeControllerManager returns the path of the published kube-controller-manager.
func KubeControllerManager() (string, error) { return published("kube-controller-manager") }

func published(name string) (string, error) {
	return OfKubernetes(name, "k8s.io/kubernetes/cmd/"+name)
}

// Further is the folder of a module with more published programs.
const Further = "test/operators/programs/further"

// Kwok returns the path of the published kwok. It acts as kubelets.
func Kwok() (string, error) { return build("kwok", Further, "sigs.k8s.io/kwok/cmd/kwok", "") }

// Helm3 returns the path of the published Helm 3.
func Helm3() (string, error) { return build("helm3", Further, "helm.sh/helm/v3/cmd/helm", "") }

// Helm4 returns the path of the published Helm 4.
func Helm4() (string, error) { return build("helm4", Further, "helm.sh/helm/v4/cmd/helm", "") }

// Act returns the path of the published act. It runs workflows of GitHub on this machine, without Docker.
func Act() (string, error) {
	return build("act", Further, "github.com/nektos/act", "", "-tags", "WITHOUT_DOCKER")
}

// Etcd returns the path of the published etcd.
func Etcd() (string, error) {
	return build("etcd", "test", "go.etcd.io/etcd/server/v3", "")
}

// OfKubernetes builds a package of this module or of its requirements, with the version of Kubernetes, and returns the path of
// the program.
func OfKubernetes(name, pkg string) (string, error) { return build(name, "test", pkg, versionFlags) }

// build builds a package of a module. Several test processes may call it at once.
func build(name, module, pkg, flags string, args ...string) (string, error) {
	top, err := Top()
	if err != nil {
		return "", err
	}
	out := filepath.Join(top, ".build")
	if err := os.MkdirAll(out, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(out, name+".lock")).Lock()
	if err != nil {
		return "", err
	}
	defer unlock()

	program := filepath.Join(out, name+exeSuffix())
	args = append(append([]string{"build", "-trimpath", "-ldflags", "-s -w " + flags}, args...), "-o", program, pkg)
	build := exec.Command("go", args...)
	build.Dir = filepath.Join(top, filepath.FromSlash(module))
	// Flags such as -race are for the tests, not for the programs.
	build.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false", "GOWORK=off", "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s in %s: %w\n%s", name, build.Dir, err, said)
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
		_, err := os.Stat(filepath.Join(dir, "test", "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside the repository: no folder above has test/go.mod")
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
