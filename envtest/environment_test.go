package envtest

//lint:file-ignore SA1019 what is deprecated is tested as long as it is there

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// clientOf returns a client without caches.
func clientOf(t testing.TB, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

func gadget(name string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Gadget",
		"metadata": map[string]any{"namespace": "default", "name": name},
		"spec":     map[string]any{"size": size, "parts": []any{"a"}},
	}}
}

// An Environment does all that suites expect of controller-runtime's envtest.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	e := &Environment{CRDDirectoryPaths: []string{"testdata/crds"}, ErrorIfCRDPathMissing: true}
	config := e.StartFor(t)
	c := clientOf(t, config)
	ctx := t.Context()
	if e.Config != config || len(e.CRDs) != 1 || e.WebhookInstallOptions.LocalServingPort == 0 || e.Scheme == nil {
		t.Errorf("what Start sets: %d definitions, %+v", len(e.CRDs), e.WebhookInstallOptions)
	}
	t.Run("the definitions are installed", func(t *testing.T) {
		if err := c.Create(ctx, gadget("g", 3)); err != nil {
			t.Error(err)
		}
		if err := c.Create(ctx, gadget("bad", 0)); !apierrors.IsInvalid(err) {
			t.Errorf("%v", err)
		}
	})
	t.Run("the kubeconfig is an administrator's", func(t *testing.T) {
		config, err := clientcmd.RESTConfigFromKubeConfig(e.KubeConfig)
		if err != nil {
			t.Fatal(err)
		}
		if err := clientOf(t, config).List(ctx, &corev1.SecretList{}); err != nil {
			t.Error(err)
		}
	})
	t.Run("users have the rights that they were given", func(t *testing.T) {
		user, err := e.AddUser(User{Name: "jane"}, &rest.Config{QPS: 7})
		if err != nil {
			t.Fatal(err)
		}
		err = clientOf(t, user.Config()).List(ctx, &corev1.SecretList{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `"jane"`) || user.Config().QPS != 7 {
			t.Errorf("%v, QPS %v", err, user.Config().QPS)
		}
	})
	t.Run("no controller of kube-controller-manager runs", func(t *testing.T) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
		if err := errors.Join(c.Create(ctx, namespace), c.Delete(ctx, namespace), e.WaitIdle(ctx)); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil || namespace.Status.Phase != corev1.NamespaceTerminating {
			t.Errorf("%s, %v", namespace.Status.Phase, err)
		}
	})
}

// Controllers run by the names of kube-controller-manager.
func TestControllers(t *testing.T) {
	t.Parallel()
	e := &Environment{Controllers: []string{"namespace-controller"}}
	c := clientOf(t, e.StartFor(t))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "doomed"}}
	if err := errors.Join(c.Create(t.Context(), namespace), c.Delete(t.Context(), namespace), e.WaitIdle(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
		t.Errorf("%v", err)
	}
	bad := &Environment{Controllers: []string{"nonsense"}}
	if _, err := bad.Start(); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("%v", err)
	}
}

// Flags have the meaning of kube-apiserver's, or are rejected.
func TestFlags(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	e.ControlPlane.GetAPIServer().Configure().Append("disable-admission-plugins", "NamespaceLifecycle").Set("service-cluster-ip-range", "10.9.8.0/24")
	c := clientOf(t, e.StartFor(t))
	object := configMap("a")
	object.Namespace = "that-is-not"
	if err := c.Create(t.Context(), object); err != nil {
		t.Error(err)
	}
	var service corev1.Service
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &service); err != nil || service.Spec.ClusterIP != "10.9.8.1" {
		t.Errorf("%s, %v", service.Spec.ClusterIP, err)
	}
	for name, set := range map[string]func(*APIServer){
		"unknown flag: --nonsense":                             func(s *APIServer) { s.Configure().Set("nonsense", "1") },
		"error reading encryption provider configuration file": func(s *APIServer) { s.Configure().Set("encryption-provider-config", "file") },
		"no insecure port":                                     func(s *APIServer) { s.InsecureServing = &ListenAddr{} },
		"--insecure-port":                                      func(s *APIServer) { s.Args = DefaultKubeAPIServerFlags },
	} {
		bad := &Environment{}
		set(bad.ControlPlane.GetAPIServer())
		if _, err := bad.Start(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, want %s", err, name)
		}
		if err := bad.Stop(); err != nil {
			t.Error(err)
		}
	}
}

// An Environment can start again, can stop by its ControlPlane, and leaves nothing behind.
func TestStopAndStartAgain(t *testing.T) {
	t.Parallel()
	e := &Environment{}
	var before string
	for range 2 {
		config, err := e.Start()
		if err != nil {
			t.Fatal(err)
		}
		if err := clientOf(t, config).Create(t.Context(), configMap("mine")); err != nil {
			t.Errorf("what was there before is there again: %v", err)
		}
		if _, err := e.Start(); err == nil {
			t.Error("it was started twice")
		}
		before = e.ControlPlane.APIServer.CertDir
		if err := e.Stop(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(before); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", before, err)
		}
	}
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(e.ControlPlane.Stop(), e.Stop()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := client.New(config, client.Options{}); err == nil {
		if err := clientOf(t, config).List(ctx, &corev1.SecretList{}); err == nil {
			t.Error("it still answers")
		}
	}
}

// An existing cluster is used, and is not stopped.
func TestExistingCluster(t *testing.T) {
	t.Parallel()
	cluster, yes := &Environment{}, true
	config := cluster.StartFor(t)
	e := &Environment{
		UseExistingCluster: &yes, Config: config, CRDDirectoryPaths: []string{filepath.Join("testdata", "crds")},
		CRDInstallOptions: CRDInstallOptions{CleanUpAfterUse: true},
	}
	if _, err := e.Start(); err != nil {
		t.Fatal(err)
	}
	c := clientOf(t, config)
	if err := c.Create(t.Context(), gadget("g", 1)); err != nil {
		t.Error(err)
	}
	if _, err := e.Snapshot(); !errors.Is(err, errNotStarted) {
		t.Errorf("%v", err)
	}
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := cluster.WaitIdle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), gadget("h", 1)); err == nil {
		t.Error("the definition was not deleted")
	}
	if err := c.List(t.Context(), &corev1.SecretList{}); err != nil {
		t.Errorf("the cluster was stopped: %v", err)
	}
}

// The server's log goes to the output of the APIServer.
func TestOutput(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	e := &Environment{}
	s := e.ControlPlane.GetAPIServer()
	s.Err = write
	s.Configure().Set("watch-cache", "false")
	first := make(chan string, 1)
	go func() {
		buf := make([]byte, 1000)
		n, _ := read.Read(buf)
		first <- string(buf[:n])
		_, _ = io.Copy(io.Discard, read)
	}()
	e.StartFor(t)
	if said := <-first; !strings.Contains(said, "--watch-cache") {
		t.Errorf("%s", said)
	}
}

// A server has the version of the field, and says so.
func TestVersion(t *testing.T) {
	t.Parallel()
	e := &Environment{Version: "1.35"}
	config := e.StartFor(t)
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	if v, err := d.ServerVersion(); err != nil || v.EmulationMinor != "35" || v.MinCompatibilityMinor != "34" {
		t.Errorf("%+v, %v", v, err)
	}
	// The kind is in v1 since v1.36.
	if list, err := d.ServerResourcesForGroupVersion("admissionregistration.k8s.io/v1"); err != nil || len(list.APIResources) != 5 {
		t.Errorf("%v, %v", list, err)
	}
}
