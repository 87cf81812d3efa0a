package builtin

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	admissionv1alpha1 "k8s.io/api/admissionregistration/v1alpha1"
	admissionv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	coordinationv1alpha2 "k8s.io/api/coordination/v1alpha2"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	migrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/builtin/policy"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/gotype"
	"github.com/anykind/anykind/internal/schema/model"
)

// renamed has the published Go types of the versions without Go types of their own, by version and resource.
var renamed = map[string]runtime.Object{
	"admissionregistration.k8s.io/v1alpha1 mutatingadmissionpolicies":       &admissionv1alpha1.MutatingAdmissionPolicy{},
	"admissionregistration.k8s.io/v1alpha1 mutatingadmissionpolicybindings": &admissionv1alpha1.MutatingAdmissionPolicyBinding{},
	"admissionregistration.k8s.io/v1beta1 mutatingadmissionpolicies":        &admissionv1beta1.MutatingAdmissionPolicy{},
	"admissionregistration.k8s.io/v1beta1 mutatingadmissionpolicybindings":  &admissionv1beta1.MutatingAdmissionPolicyBinding{},
	"certificates.k8s.io/v1alpha1 clustertrustbundles":                      &certificatesv1alpha1.ClusterTrustBundle{},
	"coordination.k8s.io/v1alpha2 leasecandidates":                          &coordinationv1alpha2.LeaseCandidate{},
	"networking.k8s.io/v1beta1 ipaddresses":                                 &networkingv1beta1.IPAddress{},
	"networking.k8s.io/v1beta1 servicecidrs":                                &networkingv1beta1.ServiceCIDR{},
	"policy/v1beta1 evictions":                                              &policyv1beta1.Eviction{},
	"resource.k8s.io/v1beta2 deviceclasses":                                 &resourcev1beta2.DeviceClass{},
	"resource.k8s.io/v1beta2 devicetaintrules":                              &resourcev1beta2.DeviceTaintRule{},
	"resource.k8s.io/v1beta2 resourceclaims":                                &resourcev1beta2.ResourceClaim{},
	"resource.k8s.io/v1beta2 resourceclaimtemplates":                        &resourcev1beta2.ResourceClaimTemplate{},
	"resource.k8s.io/v1beta2 resourceslices":                                &resourcev1beta2.ResourceSlice{},
	"scheduling.k8s.io/v1beta1 podgroups":                                   &schedulingv1beta1.PodGroup{},
	"scheduling.k8s.io/v1beta1 workloads":                                   &schedulingv1beta1.Workload{},
	"storage.k8s.io/v1beta1 volumeattributesclasses":                        &storagev1beta1.VolumeAttributesClass{},
	"storagemigration.k8s.io/v1beta1 storageversionmigrations":              &migrationv1beta1.StorageVersionMigration{},
}

// A version without Go types of its own has the fields, the models, the decoding errors, the releases and the warning of
// its published Go type.
func TestRenamed(t *testing.T) {
	kinds := resource.NewSet(append(Definitions(), policy.Evictions()))
	for id, of := range renamed {
		compareWithType(t, kinds, id, of)
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
	compareErrors(t, id, v, published)
	if marks := rule.Marks(); marks.HasPackage(published.PkgPath()) {
		compareModels(t, v, published, model.Kind{Group: group, Version: version, Kind: published.Name()})
	}
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

// Columns of a few kinds have the documentation of another version.
func TestColumnsOfOtherVersions(t *testing.T) {
	kinds := resource.NewSet(Definitions())
	for _, tt := range []struct {
		group, plural, column string
		of                    interface{ SwaggerDoc() map[string]string }
		field                 string
	}{
		{"coordination.k8s.io", "leasecandidates", "LeaseName", coordinationv1alpha2.LeaseCandidateSpec{}, "leaseName"},
		{"rbac.authorization.k8s.io", "clusterrolebindings", "Role", rbacv1beta1.ClusterRoleBinding{}, "roleRef"},
		{"rbac.authorization.k8s.io", "rolebindings", "Role", rbacv1beta1.RoleBinding{}, "roleRef"},
	} {
		columns := kinds.Lookup(tt.group, tt.plural).Versions[0].Columns()
		i := slices.IndexFunc(columns, func(c view.Column) bool { return c.Name == tt.column })
		if got, want := columns[i].Description, tt.of.SwaggerDoc()[tt.field]; got != want {
			t.Errorf("%s of %s: %s, want %s", tt.column, tt.plural, got, want)
		}
	}
}

// compareModels compares the models of a version with those of its published Go type, whose package has its own markers.
func compareModels(t *testing.T, v *resource.Version, published reflect.Type, of model.Kind) {
	t.Helper()
	own := v.Schema.Model()
	for name, want := range model.OfType(published, model.TypeOptions{Kind: of, Marks: rule.Marks}).Schemas {
		if got := own.Schemas[name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %v\nwant %v", name, got, want)
		}
	}
}

// compareErrors compares the errors for a wrong value in each field. They name Go types.
func compareErrors(t *testing.T, id string, v *resource.Version, published reflect.Type) {
	t.Helper()
	compared := 0
	for _, obj := range mistyped(published, nil) {
		raw, err := json.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		want := kjson.UnmarshalCaseSensitivePreserveInts(raw, reflect.New(published).Interface())
		if want == nil {
			continue
		}
		_, _, err = v.Schema.Complete(obj.(map[string]any))
		var got *status.Undecodable
		if !errors.As(err, &got) || got.Err.Error() != want.Error() {
			t.Errorf("%s: %s:\ngot  %v\nwant %v", id, raw, err, want)
		}
		compared++
	}
	if compared == 0 {
		t.Errorf("%s: no errors", id)
	}
}

// mistyped returns values of a type, each with a value of another type in one place.
func mistyped(of reflect.Type, within []reflect.Type) (out []any) {
	switch of.Kind() {
	case reflect.Pointer:
		return mistyped(of.Elem(), within)
	case reflect.String:
		return []any{int64(1)}
	case reflect.Slice:
		out = append(out, "x")
		for _, e := range mistyped(of.Elem(), within) {
			out = append(out, []any{e})
		}
		return out
	case reflect.Map:
		out = append(out, "x")
		for _, e := range mistyped(of.Elem(), within) {
			out = append(out, map[string]any{"k": e})
		}
		return out
	case reflect.Struct:
		if gotype.ReadsItself(of) || slices.Contains(within, of) {
			return nil
		}
		for f := range gotype.Fields(of) {
			if f.JSONName == "metadata" || len(within) == 0 && f.Type.Kind() == reflect.String {
				continue // metadata is decoded apart, and the kind selects the type
			}
			wrong := mistyped(f.Type, append(slices.Clone(within), of))
			if gotype.Deref(f.Type).Kind() == reflect.Struct && !gotype.ReadsItself(gotype.Deref(f.Type)) {
				wrong = append(wrong, "x")
			}
			for _, value := range wrong {
				out = append(out, map[string]any{f.JSONName: value})
			}
		}
		return out
	}
	return []any{"x"}
}
