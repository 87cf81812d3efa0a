package envtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// BenchmarkStart measures the cost of BeforeSuite: from an Environment with one definition to a
// config. In one run, it measures controller-runtime with kube-apiserver and etcd, if they are in
// .build at the top of the repository; controller-runtime with anykind in their place; and this
// package, also from a Snapshot. The latter two include the stop.
//
//	go test -run '^$' -bench Start -benchtime 5x
func BenchmarkStart(b *testing.B) {
	crds := []string{"testdata/crds"}
	b.Run("kube-apiserver with etcd", func(b *testing.B) {
		dir, err := filepath.Abs("../.build")
		if err != nil {
			b.Fatal(err)
		}
		for _, name := range []string{"kube-apiserver", "etcd"} {
			if !isFile(filepath.Join(dir, name)) {
				b.Skipf("there is no %s in %s", name, dir)
			}
		}
		benchPrograms(b, dir, crds)
	})
	b.Run("anykind assets", func(b *testing.B) { benchPrograms(b, assets(b), crds) })
	b.Run("in process", func(b *testing.B) {
		for b.Loop() {
			benchEnvironment(b, &Environment{CRDDirectoryPaths: crds})
		}
	})
	b.Run("from a snapshot", func(b *testing.B) {
		template := &Environment{CRDDirectoryPaths: crds}
		template.StartFor(b)
		if err := template.WaitIdle(b.Context()); err != nil {
			b.Fatal(err)
		}
		prepared, err := template.Snapshot()
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			benchEnvironment(b, &Environment{From: prepared})
		}
	})
}

func benchEnvironment(b *testing.B, e interface {
	Start() (*rest.Config, error)
	Stop() error
}) {
	b.Helper()
	if _, err := e.Start(); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	if err := e.Stop(); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
}

// benchPrograms measures controller-runtime with the programs in a folder.
func benchPrograms(b *testing.B, dir string, crds []string) {
	b.Helper()
	for b.Loop() {
		e := &envtest.Environment{BinaryAssetsDirectory: dir, CRDDirectoryPaths: crds}
		e.ControlPlane.KubectlPath = "kubectl" // never run
		benchEnvironment(b, e)
	}
}

// assets makes a folder as `anykind assets` does, without kubectl.
func assets(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	program := filepath.Join(dir, "anykind")
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", program, "./cmd/anykind")
	build.Dir = ".."
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, said)
	}
	for _, name := range []string{"kube-apiserver", "etcd"} {
		if err := os.Symlink(program, filepath.Join(dir, name)); err != nil {
			b.Fatal(err)
		}
	}
	return dir
}
