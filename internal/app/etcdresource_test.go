package app

import (
	"testing"

	"github.com/anykind/anykind/internal/builtin"
)

// Metrics of etcd have the resource of a key, wherever Kubernetes stores it.
func TestResourceOfKey(t *testing.T) {
	of := resourceOf(builtin.Stored(nil))
	for _, test := range []struct{ key, group, plural string }{
		{"/registry/configmaps/default/a", "", "configmaps"},
		{"/registry/services/specs/default/a", "", "services"},
		{"/registry/minions/a", "", "nodes"},
		{"/registry/deployments/default/a", "apps", "deployments"},
		{"/registry/apiextensions.k8s.io/customresourcedefinitions/a", "apiextensions.k8s.io", "customresourcedefinitions"},
		{"/registry/example.com/widgets/default/a", "example.com", "widgets"},
		{"/registry/example.com/widgets/", "example.com", "widgets"},
		{"/registry/.anykind/marks/a", "", ""},
		{"/registry/", "", ""},
	} {
		if group, plural := of(test.key); group != test.group || plural != test.plural {
			t.Errorf("%s is of %q, %q; want %q, %q", test.key, group, plural, test.group, test.plural)
		}
	}
}
