package former

import (
	"encoding/json"
	"reflect"
	"testing"

	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	nodev1alpha1 "k8s.io/api/node/v1alpha1"
	rbacv1alpha1 "k8s.io/api/rbac/v1alpha1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// filler sets every field to another value.
type filler struct{ n int }

func (f *filler) fill(v reflect.Value, depth int) {
	f.n++
	switch of := v.Addr().Interface().(type) {
	case *metav1.TypeMeta, *metav1.FieldsV1:
		return
	case *metav1.Time:
		*of = metav1.Unix(int64(f.n), 0)
		return
	case *metav1.MicroTime:
		*of = metav1.MicroTime(metav1.Unix(int64(f.n), 0))
		return
	case *resource.Quantity:
		*of = *resource.NewQuantity(int64(f.n), resource.DecimalSI)
		return
	case *intstr.IntOrString:
		*of = intstr.FromInt32(int32(f.n))
		if f.n%2 == 0 {
			*of = intstr.FromString("x")
		}
		return
	}
	if depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(string(rune('a' + f.n%26)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			f.fill(v.Field(i), depth+1)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			f.fill(v.Index(i), depth+1)
		}
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.fill(key, depth+1)
		f.fill(value, depth+1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(tree); err != nil { // in one order
		t.Fatal(err)
	}
	return string(data)
}

// The types of this package decode objects as Kubernetes' own types of removed versions do.
func TestTypes(t *testing.T) {
	type kubernetes interface {
		Marshal() ([]byte, error)
		Unmarshal([]byte) error
	}
	for apiVersionAndKind, own := range map[[2]string]kubernetes{
		{"apps/v1beta1", "Deployment"}:                               &extensionsv1beta1.Deployment{},
		{"extensions/v1beta1", "Deployment"}:                         &extensionsv1beta1.Deployment{},
		{"extensions/v1beta1", "DaemonSet"}:                          &extensionsv1beta1.DaemonSet{},
		{"extensions/v1beta1", "Ingress"}:                            &extensionsv1beta1.Ingress{},
		{"networking.k8s.io/v1beta1", "Ingress"}:                     &extensionsv1beta1.Ingress{},
		{"discovery.k8s.io/v1beta1", "EndpointSlice"}:                &discoveryv1beta1.EndpointSlice{},
		{"events.k8s.io/v1beta1", "Event"}:                           &eventsv1beta1.Event{},
		{"node.k8s.io/v1alpha1", "RuntimeClass"}:                     &nodev1alpha1.RuntimeClass{},
		{"rbac.authorization.k8s.io/v1alpha1", "ClusterRole"}:        &rbacv1alpha1.ClusterRole{},
		{"rbac.authorization.k8s.io/v1alpha1", "ClusterRoleBinding"}: &rbacv1alpha1.ClusterRoleBinding{},
		{"rbac.authorization.k8s.io/v1alpha1", "Role"}:               &rbacv1alpha1.Role{},
		{"rbac.authorization.k8s.io/v1alpha1", "RoleBinding"}:        &rbacv1alpha1.RoleBinding{},
	} {
		v, _ := Find(apiVersionAndKind[0], apiVersionAndKind[1])
		for _, full := range []bool{false, true} {
			if full {
				(&filler{}).fill(reflect.ValueOf(own).Elem(), 0)
			}
			raw, err := own.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			back := reflect.New(reflect.TypeOf(own).Elem()).Interface().(kubernetes)
			if err := back.Unmarshal(raw); err != nil {
				t.Fatal(err)
			}
			decoded := v.Object()
			if err := decoded.Unmarshal(raw); err != nil {
				t.Errorf("%s: %v", apiVersionAndKind, err)
			}
			if got, want := asJSON(t, decoded), asJSON(t, back); got != want {
				t.Errorf("%s: got\n%s, want\n%s", apiVersionAndKind, got, want)
			}
		}
	}
}

func TestBrokenMessages(t *testing.T) {
	for name, raw := range map[string]string{
		"a tag without a value":    "\x0a",
		"a string that is cut off": "\x12\x05ab",
		"a number for a message":   "\x0a\x00\x10\x01",
		"a broken template":        "\x12\x03\x1a\x01\xff",
	} {
		v, _ := Find("extensions/v1beta1", "Deployment")
		if err := v.Object().Unmarshal([]byte(raw)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
