package clients

import (
	"context"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/anykind/anykind/test/program"
)

// assets makes a folder as `anykind assets` does.
func assets(t *testing.T) string {
	t.Helper()
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := program.Kubectl()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	fill := exec.Command(anykind, "assets", dir)
	fill.Env = []string{"PATH=" + filepath.Dir(kubectl)}
	if said, err := fill.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return dir
}

// environment starts an environment as the unmodified suite of a controller does.
func environment(t *testing.T, e *envtest.Environment) *rest.Config {
	t.Helper()
	config, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return config
}

// A suite with envtest runs without a change in its code.
func TestEnvtest(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", assets(t))
	e := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{gadgetDefinition()}}
	config := environment(t, e)
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), waitTimeout)
	defer cancel()

	t.Run("no controller of kube-controller-manager runs", func(t *testing.T) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "suite"}}
		if err := c.Create(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		// A pod needs no ServiceAccount: envtest disables the plugin.
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "suite"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if err := c.Create(ctx, pod); err != nil {
			t.Fatal(err)
		}
		if err := c.Delete(ctx, namespace); err != nil {
			t.Fatal(err)
		}
		// The absence of an event proves nothing at once. A later write shows that the server has
		// progressed, too.
		for range 20 {
			if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "later-", Namespace: "default"}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); err != nil {
			t.Fatal(err)
		}
		if namespace.Status.Phase != corev1.NamespaceTerminating || len(namespace.Spec.Finalizers) != 1 {
			t.Errorf("the namespace is %s, with %v", namespace.Status.Phase, namespace.Spec.Finalizers)
		}
		var accounts corev1.ServiceAccountList
		if err := c.List(ctx, &accounts); err != nil || len(accounts.Items) > 0 {
			t.Errorf("%d accounts, %v", len(accounts.Items), err)
		}
	})
	t.Run("its users have the rights that they were given", func(t *testing.T) {
		user, err := e.AddUser(envtest.User{Name: "jane"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		asJane, err := client.New(user.Config(), client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		err = asJane.List(ctx, &corev1.SecretList{})
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "jane" cannot list resource "secrets" in API group "" at the cluster scope`) {
			t.Errorf("%v", err)
		}
	})
	t.Run("its kubectl works", func(t *testing.T) {
		user, err := e.AddUser(envtest.User{Name: "admin", Groups: []string{"system:masters"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		kubectl, err := user.Kubectl()
		if err != nil {
			t.Fatal(err)
		}
		said, _, err := kubectl.Run("get", "crd", "--no-headers")
		if err != nil {
			t.Fatal(err)
		}
		if out, err := io.ReadAll(said); err != nil || !strings.HasPrefix(string(out), gadgetDefinition().Name) {
			t.Errorf("%s, %v", out, err)
		}
	})
}

// A stopped server keeps nothing, and can start again.
func TestEnvtestAgain(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", assets(t))
	for range 2 {
		e := &envtest.Environment{ControlPlaneStartTimeout: waitTimeout, ControlPlaneStopTimeout: waitTimeout}
		started := time.Now()
		if _, err := e.Start(); err != nil {
			t.Fatal(err)
		}
		running := time.Now()
		if err := e.Stop(); err != nil {
			t.Fatal(err)
		}
		t.Logf("started in %v, stopped in %v", running.Sub(started).Round(time.Millisecond), time.Since(running).Round(time.Millisecond))
	}
}
