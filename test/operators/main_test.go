package operators

import (
	"context"
	"flag"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

var (
	all       = flag.Bool("all", false, "apply the manifests of all projects instead of a sample")
	reference = flag.Bool("reference", false, "compare with the published kube-apiserver")
)

// waitTimeout limits the wait for an immediate effect in a cluster.
const waitTimeout = 2 * time.Minute

// ours returns a folder with anykind under the names of the programs that it replaces.
func ours(t *testing.T) string {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fill := exec.Command(anykind, "assets", dir)
	fill.Env = []string{"PATH=" + filepath.Dir(kubectl(t))}
	if said, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return dir
}

func kubectl(t *testing.T) string {
	t.Helper()
	kubectl, err := program.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	return kubectl
}

// cluster starts the programs of a folder, with the same flags for ours and theirs.
func cluster(t *testing.T, programs string) *Cluster {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	r, err := process.StartReference(ctx, filepath.Join(programs, "kube-apiserver"), filepath.Join(programs, "etcd"), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Kill)
	return &Cluster{Kubectl: kubectl(t), Kubeconfig: r.Kubeconfig, Dir: t.TempDir()}
}

// theirs returns a folder with the published programs.
func theirs(t *testing.T) string {
	t.Helper()
	server, err := program.KubeAPIServer()
	if err == nil {
		_, err = program.Etcd()
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(server)
}
