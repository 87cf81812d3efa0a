package compile_test

import (
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/view"
	"github.com/anykind/anykind/internal/schema/crd/compile"
)

const crontabs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com, uid: u1}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, kind: CronTab, shortNames: [ct], categories: [all]}
  versions:
  - {name: v1alpha1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: other, served: false, storage: false, deprecated: true, deprecationWarning: gone soon, schema: {openAPIV3Schema: {type: object}}}
  - name: v2beta1
    served: true
    storage: true
    deprecated: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}, color: {type: string}, "a.b": {type: string}}}
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size, priority: 1}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp, description: since}
    subresources: {status: {}}
    selectableFields: [{jsonPath: .spec.color}, {jsonPath: .spec.size}]
`

func compiled(t *testing.T) *resource.Definition {
	t.Helper()
	d, err := compile.Definition(typed(t, tree(t, crontabs)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestCompileNames(t *testing.T) {
	d := compiled(t)
	got := []string{d.Group, d.Plural, d.Singular, d.Kind, d.ListKind, strings.Join(d.ShortNames, ","), strings.Join(d.Categories, ","), d.UID, d.StoragePrefix}
	want := []string{"stable.example.com", "crontabs", "crontab", "CronTab", "CronTabList", "ct", "all", "u1", "/registry/stable.example.com/crontabs/"}
	if !slices.Equal(got, want) || !d.Namespaced {
		t.Errorf("compiled to %q, namespaced %v; want %q", got, d.Namespaced, want)
	}
}

func TestCompileVersions(t *testing.T) {
	d := compiled(t)
	var got []string
	for _, v := range d.Versions {
		got = append(got, v.Name+": "+v.DeprecationWarning)
	}
	want := []string{
		"v1: ",
		"v2beta1: stable.example.com/v2beta1 CronTab is deprecated; use stable.example.com/v1 CronTab",
		"v1alpha1: stable.example.com/v1alpha1 CronTab is deprecated; use stable.example.com/v1 CronTab",
		"other: gone soon",
	}
	if !slices.Equal(got, want) {
		t.Errorf("versions\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if s := d.StorageVersion().Name; s != "v2beta1" {
		t.Errorf("storage version %s, want v2beta1", s)
	}
}

func TestCompileColumns(t *testing.T) {
	d := compiled(t)
	obj := tree(t, `{metadata: {creationTimestamp: "2026-01-05T00:00:00Z"}, spec: {size: 3, color: red}}`)
	v := d.Version("v2beta1")
	columns := v.Columns()
	if len(columns) != 2 || columns[0].Cell(obj) != int64(3) || columns[1].Cell(obj) != view.Age("2026-01-05T00:00:00Z") {
		t.Errorf("columns = %+v", columns)
	}
	if d := columns[0].Description; d != "Custom resource definition column (in JSONPath format): .spec.size" {
		t.Errorf("description = %q", d)
	}
	if c := d.Version("v1").Columns(); len(c) != 1 || c[0].Name != "Age" {
		t.Errorf("columns of a version that declares none = %+v, want Age", c)
	}
	if got := v.SelectableFields["spec.color"](obj) + v.SelectableFields["spec.size"](obj) + v.SelectableFields["spec.color"](nil); got != "red3" {
		t.Errorf("selectable fields = %q, want red and 3, and nothing of an empty object", got)
	}
}

func TestCompileStatusSubresource(t *testing.T) {
	d := compiled(t)
	if v := d.Version("v1"); v.Revert != nil || v.Subresource("status") != nil {
		t.Error("a version without a status subresource has one")
	}
	v := d.Version("v2beta1")
	created := tree(t, `{spec: {size: 1}, status: {a: 1}}`)
	v.Revert(t.Context(), &resource.Change{Object: created})
	if !object.Equal(created, tree(t, `{spec: {size: 1}}`)) {
		t.Errorf("create keeps %v, want no status", created)
	}
	old := tree(t, `{metadata: {name: x, labels: {a: b}, managedFields: [1], resourceVersion: "5"}, spec: {size: 1}, status: {a: 1}}`)
	changed := tree(t, `{metadata: {name: x, managedFields: [2], resourceVersion: "5"}, spec: {size: 2}, status: {a: 2}}`)

	obj := object.CloneTree(changed)
	v.Revert(t.Context(), &resource.Change{Object: obj, Old: old})
	if want := tree(t, `{metadata: {name: x, managedFields: [2], resourceVersion: "5"}, spec: {size: 2}, status: {a: 1}}`); !object.Equal(obj, want) {
		t.Errorf("update makes %v\nwant %v", obj, want)
	}
	obj = object.CloneTree(changed)
	v.Subresource("status").Revert(t.Context(), &resource.Change{Object: obj, Old: old})
	if want := tree(t, `{metadata: {name: x, labels: {a: b}, managedFields: [2], resourceVersion: "5"}, spec: {size: 1}, status: {a: 2}}`); !object.Equal(obj, want) {
		t.Errorf("update of the status makes %v\nwant %v", obj, want)
	}
}

// As in Kubernetes, where objects get their defaults when they are read.
func TestStatusFromTheStart(t *testing.T) {
	with := strings.Replace(crontabs, "color: {type: string}, ", "color: {type: string, default: red}, ", 1)
	with = strings.Replace(with, "          spec:", "          status: {type: object, default: {phase: new}, properties: {phase: {type: string}, n: {type: integer, default: 3}}}\n          spec:", 1)
	d, err := compile.Definition(typed(t, tree(t, with)))
	if err != nil {
		t.Fatal(err)
	}
	created := tree(t, `{spec: {size: 1}, status: {phase: mine}}`)
	d.Version("v2beta1").Revert(t.Context(), &resource.Change{Object: created})
	if want := tree(t, `{spec: {size: 1}, status: {phase: new, n: 3}}`); !object.Equal(created, want) {
		t.Errorf("create makes %v\nwant %v", created, want)
	}
}

func TestCompileRefuses(t *testing.T) {
	for what, edit := range map[string][2]string{
		"has no group":              {"group: stable.example.com", "group: ''"},
		"has no storage version":    {"storage: true", "storage: false"},
		"not been given all of its": {"kind: CronTab", "kind: ''"},
	} {
		text := strings.Replace(crontabs, edit[0], edit[1], 1)
		if _, err := compile.Definition(typed(t, tree(t, text))); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("Compile: %v, want %q", err, what)
		}
	}
}

func TestWarnOfFinalizers(t *testing.T) {
	d := compiled(t)
	got := d.Warn(t.Context(), &resource.Change{
		Object: tree(t, `{metadata: {finalizers: [orphan, example.com/fine, x, example.com, was]}}`),
		Old:    tree(t, `{metadata: {finalizers: [was]}}`),
	})
	want := []string{
		`metadata.finalizers: "example.com": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
		`metadata.finalizers: "x": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func tree(t *testing.T, text string) object.Tree {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	out := object.Tree{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func typed(t *testing.T, in object.Tree) *v1.CustomResourceDefinition {
	t.Helper()
	c := &v1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(in, c); err != nil {
		t.Fatal(err)
	}
	return c
}
