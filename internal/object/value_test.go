package object_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/anykind/anykind/internal/builtin"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/objecttest"
)

var converter = runtime.DefaultUnstructuredConverter

func tree(t testing.TB, doc []byte) (out object.Tree) {
	t.Helper()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// Random objects of every built-in type convert as with Kubernetes' converter, in both directions.
func TestAsKubernetesConverts(t *testing.T) {
	for _, d := range builtin.Definitions() {
		for _, v := range d.Versions {
			if v.New == nil {
				continue
			}
			typ := reflect.TypeOf(v.New()).Elem()
			t.Run(typ.String(), func(t *testing.T) {
				for seed := range uint64(40) {
					same(t, typ, tree(t, objecttest.JSON(seed, typ)))
				}
			})
		}
	}
}

func same(t *testing.T, typ reflect.Type, obj object.Tree) {
	t.Helper()
	want := reflect.New(typ).Interface()
	wantErr := converter.FromUnstructured(object.CloneTree(obj), want)
	got, err := object.NewValue(typ, obj)
	if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
		t.Fatalf("of %s there is\n%+v, %v, and Kubernetes has\n%+v, %v", object.AppendJSON(nil, obj), got, err, want, wantErr)
	}
	wantTree, wantErr := converter.ToUnstructured(want)
	gotTree, err := object.TreeOf(got)
	if (err == nil) != (wantErr == nil) || !reflect.DeepEqual(gotTree, wantTree) {
		t.Fatalf("of %+v there is\n%s, %v, and Kubernetes has\n%s, %v", want,
			object.AppendJSON(nil, gotTree), err, object.AppendJSON(nil, wantTree), wantErr)
	}
}

// Objects that do not fit the type have the errors of Kubernetes, and the same remains.
func TestUnusualForms(t *testing.T) {
	for _, doc := range []string{
		`{"spec":[]}`,
		`{"spec":{"priority":1.0,"hostNetwork":true}}`,
		`{"spec":{"priority":1.5}}`,
		`{"spec":{"priority":3000000000}}`,
		`{"spec":{"priority":"1"}}`,
		`{"spec":{"hostNetwork":"true"}}`,
		`{"spec":{"containers":{}}}`,
		`{"spec":{"containers":[null,{"name":"x","args":["a",null],"resources":{"limits":{"cpu":"x"}}}]}}`,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":1,"memory":"1.50Gi","x":null}}}]}}`,
		`{"spec":{"containers":[{"readinessProbe":{"httpGet":{"port":3000000000}}}]}}`,
		`{"spec":{"containers":[{"readinessProbe":{"httpGet":{"port":1.0}}}]}}`,
		`{"metadata":{"creationTimestamp":"yesterday","labels":{"a":1}}}`,
		`{"metadata":{"deletionTimestamp":null,"labels":{"a":null},"Name":"x","unknown":{}}}`,
		`{"metadata":{"managedFields":[{"fieldsV1":{ "f:a" : {"b":1}},"time":"2026-01-02T03:04:05.6+01:00"}]}}`,
		`{"metadata":null,"status":{"conditions":[]}}`,
	} {
		same(t, reflect.TypeFor[corev1.Pod](), tree(t, []byte(doc)))
	}
	same(t, reflect.TypeFor[corev1.Secret](), tree(t, []byte(`{"data":{"a":"YQ==","b":"","c":null}}`)))
	same(t, reflect.TypeFor[corev1.Secret](), tree(t, []byte(`{"data":{"a":"not base64"}}`)))
	same(t, reflect.TypeFor[metav1.PartialObjectMetadata](), nil)
}

func BenchmarkPodValue(b *testing.B) {
	typ := reflect.TypeFor[corev1.Pod]()
	var pod object.Tree
	for seed := uint64(0); len(object.AppendJSON(nil, pod)) < 4000; seed++ {
		pod = tree(b, objecttest.JSON(seed, typ))
	}
	value, err := object.NewValue(typ, pod)
	if err != nil {
		b.Fatal(err)
	}
	if pod, err = object.TreeOf(value); err != nil { // in the form that is stored
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"NewValue", func() error { _, err := object.NewValue(typ, pod); return err }},
		{"NewValue by Kubernetes", func() error { return converter.FromUnstructured(pod, new(corev1.Pod)) }},
		{"TreeOf", func() error { _, err := object.TreeOf(value); return err }},
		{"TreeOf by Kubernetes", func() error { _, err := converter.ToUnstructured(value); return err }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.do(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
