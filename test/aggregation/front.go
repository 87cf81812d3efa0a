package aggregation

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"
)

// Each program is built once.
var (
	anykind               = sync.OnceValues(program.Anykind)
	kubeAPIServer         = sync.OnceValues(program.KubeAPIServer)
	kubeControllerManager = sync.OnceValues(program.KubeControllerManager)
	sampleAPIServer       = sync.OnceValues(program.SampleAPIServer)
	etcd                  = sync.OnceValues(program.Etcd)
)

// published is the folder of the module k8s.io/sample-apiserver.
var published = sync.OnceValues(func() (string, error) {
	const path = "k8s.io/sample-apiserver"
	modules, err := program.Published("test", path)
	return modules[path].Dir, err
})

// A front is an aggregating API server: anykind, or kube-apiserver with kube-controller-manager. Its
// configuration follows the page "Configure the Aggregation Layer".
type front struct {
	kubeconfig string // kubeconfig of an administrator
	stop       func() error
}

// flags returns the flags of the page, with a CA for the front proxy's client certificate.
func flags(dir string) ([]string, error) {
	proxies, err := newAuthority(dir, "front-proxy-ca")
	if err != nil {
		return nil, err
	}
	cert, key, err := proxies.issue("front-proxy-client")
	return []string{
		"--requestheader-client-ca-file=" + proxies.file(),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-username-headers=X-Remote-User",
		"--proxy-client-cert-file=" + cert,
		"--proxy-client-key-file=" + key,
	}, err
}

// startFront starts a front with its data in a folder and additional flags: kube-apiserver with an
// etcd, or anykind.
func startFront(ctx context.Context, dir string, reference bool, more ...string) (*front, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	configured, err := flags(dir)
	if err != nil {
		return nil, err
	}
	configured = append(configured, more...)
	if reference {
		return startReference(ctx, dir, configured)
	}
	path, err := anykind()
	if err != nil {
		return nil, err
	}
	server, err := process.Start(ctx, path, filepath.Join(dir, "data"), "", configured...)
	if err != nil {
		return nil, err
	}
	return &front{kubeconfig: server.Kubeconfig, stop: server.Stop}, nil
}

func startReference(ctx context.Context, dir string, configured []string) (*front, error) {
	server, err := kubeAPIServer()
	if err != nil {
		return nil, err
	}
	store, err := etcd()
	if err != nil {
		return nil, err
	}
	// Without client certificates of its own, it does not publish the configuration for extension
	// servers.
	clients, err := newAuthority(dir, "clients-ca")
	if err != nil {
		return nil, err
	}
	r, err := process.StartReference(ctx, server, store, dir, append(configured, "--client-ca-file="+clients.file())...)
	if err != nil {
		return nil, err
	}
	controllers, err := startControllers(ctx, r.Kubeconfig)
	if err != nil {
		r.Kill()
		return nil, err
	}
	return &front{kubeconfig: r.Kubeconfig, stop: func() error {
		controllers.Process.Kill() // fails only after the end of the process
		controllers.Wait()
		r.Kill()
		return nil
	}}, nil
}

// startControllers starts the controllers of kube-controller-manager that anykind has built in.
func startControllers(ctx context.Context, kubeconfig string) (*exec.Cmd, error) {
	path, err := kubeControllerManager()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, path, "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--controllers=garbage-collector-controller,namespace-controller")
	return c, c.Start()
}

// keep writes the log of a program to a file of a folder, if one is named.
func keep(dir, name string, log io.WriterTo) error {
	if dir == "" {
		return nil
	}
	f, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = log.WriteTo(f)
	return err
}
