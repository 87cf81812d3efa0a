package builtin

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/apiserverinternal/install"
	_ "k8s.io/kubernetes/pkg/apis/lifecycle/install"
	_ "k8s.io/kubernetes/pkg/apis/storagemigration/install"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/builtin/former"
)

// Versions that this server can decode are those of kube-apiserver, in the same order. StorageVersions have them.
func TestDecodableVersions(t *testing.T) {
	for _, d := range builtin.Definitions() {
		var theirs, ours []string
		for _, gv := range legacyscheme.Scheme.VersionsForGroupKind(schema.GroupKind{Group: d.Group, Kind: d.Kind}) {
			theirs = append(theirs, gv.String())
		}
		for _, v := range d.Versions {
			ours = append(ours, d.APIVersion(v.Name))
		}
		ours = append(ours, former.Versions(d.Group, d.Kind)...)
		stored := d.StorageVersion().Creater == nil && d.StorageVersion().Reader == nil
		if theirs != nil && stored && !slices.Equal(theirs, ours) {
			t.Errorf("%s: %s, want %s", cmp.Or(d.Group, "core")+"."+d.Plural, strings.Join(ours, " "), strings.Join(theirs, " "))
		}
	}
}
