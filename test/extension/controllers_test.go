package extension

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/anykind/anykind/test/program"
)

// testControllers has the published kube-controller-manager delete namespaces and collect garbage, for
// objects in the cluster and objects in anykind that own each other.
func testControllers(t *testing.T, c *cluster, _ *extension) {
	path, err := program.KubeControllerManager()
	must(t, err)
	file := t.TempDir() + "/kubeconfig"
	root := certify(t, t.TempDir(), c.clients, "root", "system:masters")
	must(t, clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"c": {Server: c.url, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*api.AuthInfo{"u": {ClientCertificate: root.certFile, ClientKey: root.keyFile}},
		Contexts:       map[string]*api.Context{"c": {Cluster: "c", AuthInfo: "u"}},
		CurrentContext: "c",
	}, file))
	_, err = run(t, path, "--kubeconfig="+file, "--controllers=namespace-controller,garbage-collector-controller",
		"--secure-port="+freePorts(t, 1)[0], "--bind-address=127.0.0.1", "--leader-elect=false")
	must(t, err)

	_, err = c.client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "market"}}, metav1.CreateOptions{})
	must(t, err)
	tabs, maps := crontabs(t, c.admin, "market"), c.client.CoreV1().ConfigMaps("market")
	owner := func(kind, version, name string, uid metav1.ObjectMeta) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: version, Kind: kind, Name: name, UID: uid.UID, BlockOwnerDeletion: &yes}}
	}
	newMap := func(name string, owners []metav1.OwnerReference) *corev1.ConfigMap {
		made, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: owners}}, metav1.CreateOptions{})
		must(t, err)
		return made
	}
	newTab := func(name string, owners []metav1.OwnerReference) metav1.ObjectMeta {
		tab := crontab(name)
		tab.SetOwnerReferences(owners)
		made, err := tabs.Create(t.Context(), tab, metav1.CreateOptions{})
		must(t, err)
		return metav1.ObjectMeta{UID: made.GetUID()}
	}
	gone := func(what string, get func(context.Context) error) {
		t.Helper()
		eventually(t, what+" is gone", func(ctx context.Context) error {
			if err := get(ctx); !apierrors.IsNotFound(err) {
				return fmt.Errorf("it is there: %v", err)
			}
			return nil
		})
	}

	above := newMap("above", nil)
	newTab("owned", owner("ConfigMap", "v1", "above", above.ObjectMeta))
	must(t, maps.Delete(t.Context(), "above", metav1.DeleteOptions{}))
	gone("the CronTab of a ConfigMap", func(ctx context.Context) error { _, err := tabs.Get(ctx, "owned", getOptions); return err })

	// Foreground deletion, with an owner in anykind.
	first := newTab("first", nil)
	newMap("below", owner("CronTab", "stable.example.com/v1", "first", first))
	foreground := metav1.DeletePropagationForeground
	must(t, tabs.Delete(t.Context(), "first", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	gone("the ConfigMap of a CronTab", func(ctx context.Context) error { _, err := maps.Get(ctx, "below", getOptions); return err })
	gone("the CronTab", func(ctx context.Context) error { _, err := tabs.Get(ctx, "first", getOptions); return err })

	newTab("left", nil)
	must(t, c.client.CoreV1().Namespaces().Delete(t.Context(), "market", metav1.DeleteOptions{}))
	gone("the namespace", func(ctx context.Context) error {
		_, err := c.client.CoreV1().Namespaces().Get(ctx, "market", getOptions)
		return err
	})
	gone("the CronTab in it", func(ctx context.Context) error { _, err := tabs.Get(ctx, "left", getOptions); return err })
}
