package etcd

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

var (
	roles           = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "roles"}
	roleBindings    = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"}
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
)

// A place is one of several servers, and the client configuration of its administrator.
type place struct {
	dynamic.Interface
	config *rest.Config
}

// two starts two servers over an etcd with the same signing keys. Both authenticate bob.
func two(t *testing.T) [2]place {
	t.Helper()
	dir := t.TempDir()
	tokens, keys := filepath.Join(dir, "tokens"), filepath.Join(dir, "keys")
	if err := os.WriteFile(tokens, []byte("hush,bob,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(keys, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := serviceaccount.OpenKeys(keys); err != nil {
		t.Fatal(err)
	}
	o := options(Start(t))
	key := filepath.Join(keys, "sa.key")
	o.TokenFile, o.ServiceAccounts = tokens, serviceaccount.Options{KeyFiles: []string{key}, SigningKeyFile: key}
	var places [2]place
	for i := range places {
		config := administrator(t, o)
		places[i] = place{clientOf(t, config), config}
	}
	return places
}

// as returns a client with a token.
func (p place) as(t *testing.T, token string) dynamic.Interface {
	t.Helper()
	config := rest.AnonymousClientConfig(p.config)
	config.BearerToken, config.QPS = token, -1
	return clientOf(t, config)
}

// parsed returns an object from YAML.
func parsed(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// A role binding that is created or deleted through one server takes effect at once on the other.
func TestGrantsCountThroughAnotherServer(t *testing.T) {
	places := two(t)
	ctx := t.Context()
	got := must[*unstructured.Unstructured](t)
	got(places[0].Resource(roles).Namespace("default").Create(ctx, parsed(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: r}
rules: [{apiGroups: [''], resources: [configmaps], verbs: [list]}]
`), metav1.CreateOptions{}))
	binding := parsed(t, `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: bob}]
`)
	bob := [2]dynamic.Interface{places[0].as(t, "hush"), places[1].as(t, "hush")}
	for i := range 50 {
		here, there := i%2, (i+1)%2
		bindings := places[here].Resource(roleBindings).Namespace("default")
		got(bindings.Create(ctx, binding, metav1.CreateOptions{}))
		if _, err := bob[there].Resource(configMaps).Namespace("default").List(ctx, metav1.ListOptions{}); err != nil {
			t.Fatalf("round %d, granted through another server: %v", i, err)
		}
		if err := bindings.Delete(ctx, "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := bob[there].Resource(configMaps).Namespace("default").List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Fatalf("round %d, taken away through another server: %v", i, err)
		}
	}
}

// Another server accepts a token, until the ServiceAccount is deleted through either.
func TestTokensCountThroughAnotherServer(t *testing.T) {
	places := two(t)
	ctx := t.Context()
	got := must[*unstructured.Unstructured](t)
	for i := range 30 {
		here, there := places[i%2], places[(i+1)%2]
		name := fmt.Sprint("robot", i)
		accounts := here.Resource(serviceAccounts).Namespace("default")
		got(accounts.Create(ctx, parsed(t, "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: "+name+"}"), metav1.CreateOptions{}))
		granted := got(accounts.Create(ctx, parsed(t, "apiVersion: authentication.k8s.io/v1\nkind: TokenRequest\nmetadata: {name: "+name+"}"), metav1.CreateOptions{}, "token"))
		token, _, _ := unstructured.NestedString(granted.Object, "status", "token")
		robot := there.as(t, token).Resource(configMaps).Namespace("default")
		if _, err := robot.List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "system:serviceaccount:default:"+name) {
			t.Fatalf("round %d: %v", i, err)
		}
		if err := accounts.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := robot.List(ctx, metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
			t.Fatalf("round %d, the account is gone: %v", i, err)
		}
	}
}
