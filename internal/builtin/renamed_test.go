package builtin

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/schema/gotype"
)

// A version without Go types of its own has the fields, the releases and the warning of its published Go type.
func TestRenamed(t *testing.T) {
	kinds := resource.NewSet(Definitions())
	for plural, of := range map[string]runtime.Object{
		"certificates.k8s.io/v1alpha1 clustertrustbundles":         &certificatesv1alpha1.ClusterTrustBundle{},
		"networking.k8s.io/v1beta1 ipaddresses":                    &networkingv1beta1.IPAddress{},
		"networking.k8s.io/v1beta1 servicecidrs":                   &networkingv1beta1.ServiceCIDR{},
		"resource.k8s.io/v1beta2 deviceclasses":                    &resourcev1beta2.DeviceClass{},
		"resource.k8s.io/v1beta2 devicetaintrules":                 &resourcev1beta2.DeviceTaintRule{},
		"resource.k8s.io/v1beta2 resourceclaims":                   &resourcev1beta2.ResourceClaim{},
		"resource.k8s.io/v1beta2 resourceclaimtemplates":           &resourcev1beta2.ResourceClaimTemplate{},
		"resource.k8s.io/v1beta2 resourceslices":                   &resourcev1beta2.ResourceSlice{},
		"scheduling.k8s.io/v1beta1 podgroups":                      &schedulingv1beta1.PodGroup{},
		"scheduling.k8s.io/v1beta1 workloads":                      &schedulingv1beta1.Workload{},
		"storage.k8s.io/v1beta1 volumeattributesclasses":           &storagev1beta1.VolumeAttributesClass{},
		"storagemigration.k8s.io/v1beta1 storageversionmigrations": &migrationv1beta1.StorageVersionMigration{},
	} {
		compareWithType(t, kinds, plural, of)
	}
}

func compareWithType(t *testing.T, kinds *resource.Set, id string, want runtime.Object) {
	t.Helper()
	apiVersion, plural, _ := strings.Cut(id, " ")
	group, version, _ := strings.Cut(apiVersion, "/")
	v := kinds.Lookup(group, plural).Version(version)
	own, published := reflect.TypeOf(v.New()).Elem(), reflect.TypeOf(want).Elem()
	if own == published || gotype.Signature(own) != gotype.Signature(published) {
		t.Errorf("%s: the type has the fields of %v, want those of %v", id, own, published)
	}
	compareNumbers(t, own, published)
	life := want.(interface {
		APILifecycleIntroduced() (major, minor int)
		APILifecycleDeprecated() (major, minor int)
		APILifecycleRemoved() (major, minor int)
	})
	_, introduced := life.APILifecycleIntroduced()
	_, deprecated := life.APILifecycleDeprecated()
	_, removed := life.APILifecycleRemoved()
	if v.Introduced != introduced || v.Removed != removed || v.Deprecated != (deprecated <= int(gate.Current)) {
		t.Errorf("%s: introduced %d, removed %d, deprecated %t, want %d, %d and since %d", id, v.Introduced, v.Removed, v.Deprecated, introduced, removed, deprecated)
	}
	if v.Deprecated && !strings.Contains(v.DeprecationWarning, fmt.Sprintf("in v1.%d+", deprecated)) {
		t.Errorf("%s: %s", id, v.DeprecationWarning)
	}
	other, instead := want.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	})
	if instead && !strings.HasSuffix(v.DeprecationWarning, "; use "+other.APILifecycleReplacement().GroupVersion().String()+" "+published.Name()) ||
		!instead && strings.Contains(v.DeprecationWarning, "; use ") {
		t.Errorf("%s: %s", id, v.DeprecationWarning)
	}
}

// compareNumbers compares the numbers of fields in protobuf.
func compareNumbers(t *testing.T, a, b reflect.Type) {
	t.Helper()
	seen := map[reflect.Type]bool{}
	var walk func(a, b reflect.Type)
	walk = func(a, b reflect.Type) {
		for a.Kind() == reflect.Pointer || a.Kind() == reflect.Slice || a.Kind() == reflect.Map {
			a, b = a.Elem(), b.Elem()
		}
		if a.Kind() != reflect.Struct || a == b || seen[a] {
			return
		}
		seen[a] = true
		for i := range a.NumField() {
			f := a.Field(i)
			g, ok := b.FieldByName(f.Name)
			if !ok || f.Tag.Get("protobuf") != g.Tag.Get("protobuf") {
				t.Errorf("%v.%s: %s, want %s", a, f.Name, f.Tag, g.Tag)
				continue
			}
			walk(f.Type, g.Type)
		}
	}
	walk(a, b)
}
