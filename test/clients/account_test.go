package clients

import (
	"context"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// controllerRules are the rules of the manager in these tests, as kubebuilder would generate them from
// its markers.
var controllerRules = []rbacv1.PolicyRule{
	{APIGroups: []string{gadgets.Group}, Resources: []string{"gadgets"}, Verbs: []string{"get", "list", "watch", "update"}},
	{APIGroups: []string{gadgets.Group}, Resources: []string{"gadgets/status"}, Verbs: []string{"patch"}},
	{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "update", "delete"}},
}

// electionRules are its rules for leader election, in its own namespace.
var electionRules = []rbacv1.PolicyRule{
	{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
	{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
}

const own = "gadget-system" // the namespace of the manager

// account creates a ServiceAccount with these rules, and returns a config with its token.
func account(ctx context.Context, t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	named := metav1.ObjectMeta{Namespace: own, Name: "gadgets"}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own, Name: named.Name}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: own}},
		&corev1.ServiceAccount{ObjectMeta: named},
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: named.Name}, Rules: controllerRules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: named.Name}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: named.Name},
		},
		&rbacv1.Role{ObjectMeta: named, Rules: electionRules},
		&rbacv1.RoleBinding{
			ObjectMeta: named, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: named.Name},
		},
	} {
		if err := c.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	token, err := typed.CoreV1().ServiceAccounts(own).CreateToken(ctx, named.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	as := rest.AnonymousClientConfig(config)
	as.BearerToken, as.QPS, as.Burst = token.Status.Token, config.QPS, config.Burst
	return as
}

// A manager works with the token and the roles of its own ServiceAccount. Requests beyond these roles
// are forbidden, and all requests once its binding is gone.
func TestManagerOfAServiceAccount(t *testing.T) {
	_, config := start(t, "", "")
	ctx := within(t)
	define(ctx, t, config)
	s := gadgetScheme(t)
	as := account(ctx, t, config)
	t.Run("works", func(t *testing.T) {
		manage(t, as, s, own)
		reconciles(ctx, t, config, s)
	})

	c, err := client.New(as, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	list := func() error { return c.List(ctx, &GadgetList{}) }
	if err := list(); err != nil {
		t.Error(err)
	}
	for what, do := range map[string]func() error{
		`list resource "secrets" in API group "" at the cluster scope`: func() error { return c.List(ctx, &corev1.SecretList{}) },
		`create resource "gadgets" in API group "clients.example.com" in the namespace "default"`: func() error {
			return c.Create(ctx, &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "mine"}})
		},
		`delete resource "gadgets" in API group "clients.example.com" in the namespace "default"`: func() error {
			return c.Delete(ctx, &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g0"}})
		},
		`update resource "gadgets/status" in API group "clients.example.com" in the namespace "default"`: func() error {
			return c.Status().Update(ctx, &Gadget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g0"}})
		},
	} {
		refused(t, do(), what)
	}

	admin, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "gadgets"}}); err != nil {
		t.Fatal(err)
	}
	refused(t, list(), `list resource "gadgets" in API group "clients.example.com" at the cluster scope`)
	if err := admin.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "gadgets"}}); err != nil {
		t.Fatal(err)
	}
	if err := list(); !apierrors.IsUnauthorized(err) {
		t.Errorf("with the token of an account that is gone: %v", err)
	}
}

// refused fails unless an error is the server's 403 for the ServiceAccount.
func refused(t *testing.T, err error, what string) {
	t.Helper()
	want := fmt.Sprintf("User %q cannot %s", "system:serviceaccount:"+own+":gadgets", what)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}
