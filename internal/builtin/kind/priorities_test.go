package kind

import "testing"

// Every priority of the table is valid in an APIService, but for the group that has none.
func TestPriorities(t *testing.T) {
	for name, p := range priorities() {
		if p.group <= 0 || p.group > 20000 && len(p.versions) > 0 {
			t.Errorf("%s: %v", name, p)
		}
		for version, position := range p.versions {
			if position <= 0 || position > 1000 {
				t.Errorf("%s/%s: %d", name, version, position)
			}
		}
	}
	for _, g := range []struct{ group, version string }{{"", "v1"}, {"coordination.k8s.io", "v1"}, {"storage.k8s.io", "v1alpha1"}} {
		if priorities()[g.group].versions[g.version] == 0 {
			t.Errorf("%v is missing", g)
		}
	}
}
