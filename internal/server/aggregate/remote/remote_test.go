package remote

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
)

var roses = schema.GroupVersion{Group: "flowers.dev", Version: "v1"}

func discovered(name, kind string, scope apidiscoveryv2.ResourceScope, verbs ...string) *apidiscoveryv2.APIResourceDiscovery {
	return &apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: scope, Verbs: verbs, ResponseKind: &metav1.GroupVersionKind{Kind: kind}}
}

// Keys of remote objects look like those of stored ones, and map to paths of the preferred
// version.
func TestKeys(t *testing.T) {
	older := schema.GroupVersion{Group: "flowers.dev", Version: "v1beta1"}
	var kinds []*resource.Definition
	for _, gv := range []schema.GroupVersion{roses, older} {
		kinds = add(kinds, gv, discovered("roses", "Rose", apidiscoveryv2.ScopeNamespace, "delete", "list", "watch"))
		kinds = add(kinds, gv, discovered("fields", "Field", apidiscoveryv2.ScopeCluster, "delete", "list"))
		kinds = add(kinds, gv, discovered("reviews", "Review", apidiscoveryv2.ScopeCluster, "create"))
	}
	if len(kinds) != 2 || kinds[0].Version("v1beta1") == nil {
		t.Fatalf("%d kinds", len(kinds))
	}
	for key, want := range map[string][2]string{
		kinds[0].Key("dev", "a"):         {"", "/apis/flowers.dev/v1/namespaces/dev/roses/a"},
		kinds[0].StoragePrefix:           {"/apis/flowers.dev/v1/roses", ""},
		kinds[0].NamespacePrefix("dev"):  {"/apis/flowers.dev/v1/namespaces/dev/roses", ""},
		kinds[1].Key("", "north"):        {"", "/apis/flowers.dev/v1/fields/north"},
		kinds[1].StoragePrefix:           {"/apis/flowers.dev/v1/fields", ""},
		"/registry/configmaps/default/a": {},
	} {
		p, err := parse(key)
		if (want == [2]string{}) != (err != nil) {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if got := p.objects(); want[0] != "" && got != want[0] {
			t.Errorf("the objects of %s are at %s, want %s", key, got, want[0])
		}
		if got, _ := p.object(); want[1] != "" && got != want[1] {
			t.Errorf("the object of %s is at %s, want %s", key, got, want[1])
		}
	}
	r, err := recordOf(place{GroupVersionResource: roses.WithResource("roses")}, []byte(`{"metadata":{"namespace":"dev","name":"a","resourceVersion":"7"}}`))
	if err != nil || r.Key != kinds[0].Key("dev", "a") || r.Revision != 7 {
		t.Error(r, err)
	}
}

// An object is missing only if the Kubernetes API server says so: a 404 of a proxy proves
// nothing.
func TestMissing(t *testing.T) {
	kind := schema.GroupResource{Group: "flowers.dev", Resource: "roses"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"the object":        {apierrors.NewNotFound(kind, "a"), true},
		"another object":    {apierrors.NewNotFound(kind, "b"), false},
		"a page of a proxy": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", kind, "a", "404 page not found", 0, true), false},
		"the kind":          {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", kind, "", "", 0, false), false},
		"nothing":           {apierrors.NewServiceUnavailable("down"), false},
	} {
		if got := missing(test.err, "a"); got != test.want {
			t.Errorf("%s is missing: %t, want %t", name, got, test.want)
		}
	}
}

// The error about missing discovery has Kubernetes' words.
func TestFailedDiscovery(t *testing.T) {
	if err := failedDiscovery(nil); err != nil {
		t.Error(err)
	}
	const want = "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: flowers.dev/v1: stale GroupVersion discovery: flowers.dev/v1"
	if err := failedDiscovery([]schema.GroupVersion{roses}); err.Error() != want {
		t.Error(err)
	}
}

// told is a log that calls a function for each line.
type told func(line string)

func (f told) Write(line []byte) (int, error) {
	f(string(line))
	return len(line), nil
}

// Failures of a watch are logged.
func TestInterruptionsAreLogged(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var lines []string
	log := slog.New(slog.NewTextHandler(told(func(line string) {
		lines = append(lines, line)
		cancel()
	}), nil))
	d := resource.New(resource.Definition{Group: roses.Group, Plural: "roses", Kind: "Rose", StoragePrefix: "/nowhere/"})
	for range (&Servers{log: log}).Follow(ctx, d) {
		t.Error("an event of nowhere")
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "resource=roses.flowers.dev") || !strings.Contains(lines[0], "not the key of an object") {
		t.Errorf("log: %q", lines)
	}
}
