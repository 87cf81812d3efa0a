package controlplane

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anykind/anykind/test/process"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// A plane is a whole control plane: anykind, kube-controller-manager, kube-scheduler, and two nodes
// with fake kubelets.
type plane struct {
	dir                string
	admin              string // kubeconfig of the administrator
	managerConfig      string // kubeconfig of system:kube-controller-manager
	client             kubernetes.Interface
	manager, scheduler *component

	mu       sync.Mutex
	number   int      // number of scripts so far
	troubles []string // errors of the fake kubelets
}

// nodes are the nodes for the pods of scripts.
var nodes = []string{"stage-1", "stage-2"}

// manages returns the flags of a kube-controller-manager with every controller that its feature gates
// allow. The grace period of nodes is ten seconds instead of fifty.
func manages(dir, kubeconfig string) []string {
	pki := filepath.Join(dir, "pki")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + filepath.Join(pki, "sa.key"),
		"--root-ca-file=" + filepath.Join(pki, "ca.crt"),
		"--cluster-signing-cert-file=" + filepath.Join(pki, "ca.pem"),
		"--cluster-signing-key-file=" + filepath.Join(pki, "ca.pem"),
		"--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16", "--service-cluster-ip-range=10.0.0.0/24",
		"--controllers=*,bootstrap-signer-controller,token-cleaner-controller,selinux-warning-controller",
		"--node-monitor-period=1s", "--node-monitor-grace-period=10s",
	}
}

// startPlane starts a plane whose server has additional flags. It serves StorageVersions, too, for
// their garbage collector.
func startPlane(t *testing.T, flags ...string) *plane {
	t.Helper()
	// The programs outlive the context of the test: the cleanup stops them one after the other.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	t.Cleanup(cancel)
	dir := t.TempDir()
	path, err := anykind()
	must(t, err)
	flags = append(flags, "--runtime-config=internal.apiserver.k8s.io/v1alpha1=true")
	p := &plane{dir: dir, admin: filepath.Join(dir, "admin.kubeconfig")}
	if *reference {
		startReference(ctx, t, path, dir)
	} else {
		server, err := process.Start(ctx, path, dir, "", flags...)
		must(t, err)
		t.Cleanup(func() {
			if err := server.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	p.client, err = clientOf(p.admin)
	must(t, err)
	p.managerConfig = p.user(t, path, "system:kube-controller-manager")
	scheduler := p.user(t, path, "system:kube-scheduler")
	p.manager = p.start(ctx, t, "kube-controller-manager", manages(dir, p.managerConfig)...)
	p.scheduler = p.start(ctx, t, "kube-scheduler", "--kubeconfig="+scheduler,
		"--authentication-kubeconfig="+scheduler, "--authorization-kubeconfig="+scheduler)
	for _, name := range nodes {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"stage": "yes"},
			Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true"}}}
		_, err := p.client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		must(t, err)
		t.Cleanup(startKubelet(ctx, p.client, name, p.fail))
	}
	for _, c := range []*component{p.manager, p.scheduler} {
		ctx, cancel := context.WithTimeout(ctx, waitTimeout)
		defer cancel()
		must(t, c.healthy(ctx))
	}
	return p
}

// user creates a kubeconfig of a user with a client certificate.
func (p *plane) user(t *testing.T, program, name string) string {
	t.Helper()
	file := filepath.Join(p.dir, strings.ReplaceAll(name, ":", "-")+".kubeconfig")
	said, err := exec.Command(program, "user", name, "--data-dir", p.dir, "--kubeconfig", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return file
}

// start runs a program until the end of the test. Its log must have no unknown errors.
func (p *plane) start(ctx context.Context, t *testing.T, name string, args ...string) *component {
	t.Helper()
	c, err := run(ctx, name, p.dir, args...)
	must(t, err)
	t.Cleanup(func() {
		if err := c.stop(); err != nil {
			t.Error(err)
		}
		if err := c.keep(*logsDir, name); err != nil {
			t.Error(err)
		}
		lines, err := c.log.errors(name)
		must(t, err)
		for _, line := range lines {
			t.Errorf("%s: %s", name, line)
		}
	})
	return c
}

// check fails a test if a fake kubelet had an error.
func (p *plane) check(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, trouble := range p.troubles {
		t.Error(trouble)
	}
}

// fail records an error of a fake kubelet.
func (p *plane) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.troubles = append(p.troubles, err.Error())
}

// stage gives a script a namespace of its own in the plane, as the current namespace. The environment
// variable NAMESPACE has its unique name.
func (p *plane) stage(env *testscript.Env, _ string) ([]byte, error) {
	p.mu.Lock()
	p.number++
	namespace := fmt.Sprintf("script-%d", p.number)
	p.mu.Unlock()
	_, err := p.client.CoreV1().Namespaces().Create(context.Background(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	env.Defer(func() {
		if err := p.client.CoreV1().Namespaces().Delete(context.Background(), namespace, metav1.DeleteOptions{}); err != nil {
			env.T().Log(err)
		}
	})
	// Pods need the ServiceAccount, which a controller creates.
	err = wait.PollUntilContextTimeout(context.Background(), 50*time.Millisecond, waitTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := p.client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return nil, err
	}
	env.Setenv("NAMESPACE", namespace)
	config, err := clientcmd.LoadFromFile(p.admin)
	if err != nil {
		return nil, err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return clientcmd.Write(*config)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
