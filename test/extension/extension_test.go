package extension

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/anykind/anykind/test/program"
)

var (
	apiServices = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	cronTabs    = schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}
	getOptions  = metav1.GetOptions{}
)

func newTokenRequest(seconds int64) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
}

// crontabs returns a client of the CronTabs of a namespace.
func crontabs(t testing.TB, as *rest.Config, namespace string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(as)
	must(t, err)
	return client.Resource(cronTabs).Namespace(namespace)
}

func crontab(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"cronSpec": "* * * * */5", "replicas": int64(1)},
	}}
}

// forbidden checks that an error is a 403 that names a user.
func forbidden(t *testing.T, err error, user string) {
	t.Helper()
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), fmt.Sprintf("User %q cannot", user)) {
		t.Errorf("%v, want that %s may not", err, user)
	}
}

// kubeAPIServers are the programs to test as kube-apiserver: the published one, and anykind by that
// name.
func kubeAPIServers(t *testing.T, anykind string) map[string]string {
	t.Helper()
	published, err := program.KubeAPIServer()
	must(t, err)
	link := filepath.Join(t.TempDir(), "kube-apiserver")
	must(t, os.Symlink(anykind, link))
	return map[string]string{"kube-apiserver": published, "anykind": link}
}

// TestExtension installs anykind in a cluster by the manifest of docs, and uses it as users of the
// cluster do. The cluster is a published kube-apiserver, and then a second anykind.
func TestExtension(t *testing.T) {
	path, err := program.Anykind() // it may take a while
	must(t, err)
	for name, kubeAPIServer := range kubeAPIServers(t, path) {
		t.Run("behind "+name, func(t *testing.T) { extend(t, kubeAPIServer, path) })
	}
}

// extend runs the steps of TestExtension, which build on each other.
func extend(t *testing.T, kubeAPIServer, path string) {
	c := startCluster(t, kubeAPIServer)
	e := c.install(t, path)
	for _, step := range []struct {
		name string
		do   func(*testing.T, *cluster, *extension)
	}{
		{"rights of a user", testRole},
		{"tokens of a ServiceAccount", testTokens},
		{"certificates and headers straight to anykind", testStraight},
		{"what is shown", testShown},
		{"namespaces", testNamespaces},
		{"controllers of the cluster", testControllers},
		{"a new authority of the front proxy", testRotation},
		{"kube-apiserver is restarted", testRestart},
		{"anykind is restarted", testReturn},
	} {
		if !t.Run(step.name, func(t *testing.T) { step.do(t, c, e) }) {
			return
		}
	}
}

// Through the cluster, a user has exactly the rights of a Role of the cluster.
func testRole(t *testing.T, c *cluster, _ *extension) {
	jane := c.as(certify(t, t.TempDir(), c.clients, "jane", "developers"))
	mine := crontabs(t, jane, "default")
	_, err := mine.Create(t.Context(), crontab("nightly"), metav1.CreateOptions{})
	forbidden(t, err, "jane")
	c.grant(t, "default", "developers", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: "developers"}, "get", "list", "create", "watch")
	eventually(t, "jane may create CronTabs", func(ctx context.Context) error { // a denial is cached for ten seconds
		_, err := mine.Create(ctx, crontab("nightly"), metav1.CreateOptions{})
		return err
	})
	list, err := mine.List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(list.Items) != 1 || list.Items[0].GetName() != "nightly" {
		t.Errorf("%v", list.Items)
	}
	forbidden(t, mine.Delete(t.Context(), "nightly", metav1.DeleteOptions{}), "jane")
	_, err = crontabs(t, jane, "kube-system").List(t.Context(), metav1.ListOptions{})
	forbidden(t, err, "jane")
}

// grant gives a subject verbs on the CronTabs of a namespace.
func (c *cluster) grant(t *testing.T, namespace, name string, to rbacv1.Subject, verbs ...string) {
	t.Helper()
	_, err := c.client.RbacV1().Roles(namespace).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{cronTabs.Group}, Resources: []string{cronTabs.Resource}, Verbs: verbs}},
	}, metav1.CreateOptions{})
	must(t, err)
	_, err = c.client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{to},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
	}, metav1.CreateOptions{})
	must(t, err)
}

// A token of a ServiceAccount works through the cluster and, by a TokenReview, directly at anykind.
func testTokens(t *testing.T, c *cluster, e *extension) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "default"}}
	_, err := c.client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{})
	must(t, err)
	c.grant(t, "default", "reader", rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "reader"}, "get", "list")
	token := c.token(t, "default", "reader")
	for _, at := range []string{c.url, e.server.URL} {
		as := with(at, token)
		list, err := crontabs(t, as, "default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Errorf("at %s: %v", at, err)
		}
		_, err = crontabs(t, as, "default").Create(t.Context(), crontab("other"), metav1.CreateOptions{})
		forbidden(t, err, "system:serviceaccount:default:reader")
	}
	for _, wrong := range []string{"nonsense", token[:len(token)-6] + "AAAAAA"} {
		if code, body := status(t, with(e.server.URL, wrong), "/apis/stable.example.com/v1/crontabs"); code != 401 {
			t.Errorf("%d %s", code, body)
		}
	}
}

// Directly at anykind, users authenticate with their certificates, and only the front proxy may set
// the user of a request.
func testStraight(t *testing.T, c *cluster, e *extension) {
	const path = "/apis/stable.example.com/v1/namespaces/default/crontabs"
	at := func(p *pair) *rest.Config {
		config := c.as(p)
		config.Host = e.server.URL
		return config
	}
	spoofed := func(config *rest.Config) *rest.Config {
		config.WrapTransport = saying("X-Remote-User", "root", "X-Remote-Group", "system:masters")
		return config
	}
	proxy := certify(t, t.TempDir(), c.front, "front-proxy-client")
	for _, tt := range []struct {
		name string
		as   *rest.Config
		code int
		says string
	}{
		{"a user with a certificate of the cluster", at(certify(t, t.TempDir(), c.clients, "jane", "developers")), 200, "nightly"},
		{"the same who says to be root", spoofed(at(certify(t, t.TempDir(), c.clients, "eve"))), 403, `User \"eve\" cannot`},
		{"an anonymous client with the headers of root", spoofed(&rest.Config{Host: e.server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}), 403, `User \"system:anonymous\" cannot`},
		{"another name by the authority of the front proxy", spoofed(at(certify(t, t.TempDir(), c.front, "front-proxy"))), 401, "Unauthorized"},
		{"the name of the front proxy by another authority", spoofed(at(certify(t, t.TempDir(), c.clients, "front-proxy-client"))), 403, `User \"front-proxy-client\" cannot`},
		{"the front proxy", spoofed(at(proxy)), 200, "nightly"},
		{"the administrator of anykind", e.admin, 200, "nightly"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if code, body := status(t, tt.as, path); code != tt.code || !strings.Contains(body, tt.says) {
				t.Errorf("%d %s, want %d %s", code, body, tt.code, tt.says)
			}
		})
	}
}

// Users of the cluster find the group in discovery and OpenAPI; anykind itself has only the groups
// that it needs.
func testShown(t *testing.T, c *cluster, e *extension) {
	eventually(t, "the cluster shows the kind", func(context.Context) error {
		for path, want := range map[string]string{
			"/apis": `"stable.example.com"`, "/apis/stable.example.com/v1": `"shortNames":["ct"]`,
			"/openapi/v2": "com.example.stable.v1.CronTab", "/openapi/v3": "apis/stable.example.com/v1",
		} {
			if code, body := status(t, c.admin, path); code != 200 || !strings.Contains(body, want) {
				return fmt.Errorf("%s: %d, without %s", path, code, want)
			}
		}
		return nil
	})
	_, body := status(t, e.admin, "/apis")
	var groups metav1.APIGroupList
	must(t, unmarshal(body, &groups))
	var names []string
	for _, g := range groups.Groups {
		names = append(names, g.Name)
	}
	if strings.Join(names, " ") != "apiextensions.k8s.io stable.example.com" && strings.Join(names, " ") != "stable.example.com apiextensions.k8s.io" {
		t.Errorf("%q", names)
	}
	for _, path := range []string{"/api/v1/namespaces", "/api/v1/secrets"} {
		if code, body := status(t, e.admin, path); code != 404 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// An object needs a namespace of the cluster that exists and is not terminating. anykind deletes the
// objects of a deleted namespace, also without a kube-controller-manager in the cluster.
func testNamespaces(t *testing.T, c *cluster, e *extension) {
	in := func(namespace string) dynamic.ResourceInterface { return crontabs(t, c.admin, namespace) }
	create := func(namespace, name string) error {
		_, err := in(namespace).Create(t.Context(), crontab(name), metav1.CreateOptions{})
		return err
	}
	if err := create("shop", "first"); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "shop" not found`) {
		t.Errorf("%v", err)
	}
	namespaces := c.client.CoreV1().Namespaces()
	_, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	must(t, err)
	must(t, create("shop", "first")) // at once, before a watch can report the namespace
	must(t, namespaces.Delete(t.Context(), "shop", metav1.DeleteOptions{}))
	eventually(t, "nothing is left in the namespace", func(ctx context.Context) error {
		list, err := in("shop").List(ctx, metav1.ListOptions{})
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("%d objects", len(list.Items))
		}
		return err
	})
	if err := create("shop", "second"); !apierrors.IsForbidden(err) || !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("%v, want that the namespace is being terminated", err)
	}
	// The cluster's part of the deletion.
	n, err := namespaces.Get(t.Context(), "shop", getOptions)
	must(t, err)
	n.Spec.Finalizers = nil
	_, err = namespaces.Finalize(t.Context(), n, metav1.UpdateOptions{})
	must(t, err)
	eventually(t, "the namespace is gone for the watch, too", func(context.Context) error {
		if err := create("shop", "third"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%w, want that the namespace is not found", err)
		}
		return nil
	})
	_, err = namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, metav1.CreateOptions{})
	must(t, err)
	eventually(t, "the namespace is a new one", func(context.Context) error { return create("shop", "fourth") })
}
