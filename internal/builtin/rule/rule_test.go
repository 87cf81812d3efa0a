package rule

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"

	"github.com/google/go-cmp/cmp"

	"github.com/anykind/anykind/internal/object/resource"
)

func messages(c *Check) (out []string) {
	for _, err := range c.Errors() {
		out = append(out, err.Error())
	}
	slices.Sort(out)
	return out
}

// Errors in a table have their position.
func TestTable(t *testing.T) {
	for text, want := range map[string]string{
		"A\n\tb  min=0\n":                            "line 1: a field without a type, or a type without a package",
		"package p\n\tb  min=0\n":                    "line 2: a field without a type, or a type without a package",
		"package p\nA\n\tb  optional\n\tb  min=0\n":  "line 4: A.b is there twice",
		"package p\nA\n\tb  maximum=3\n":             "line 3: maximum=3: no such word",
		"package p\nA\n\tb  default=text\n":          "line 3: default=text: invalid character",
		"package p\nA\n\tb  needed=\"without end\n":  "a quote that does not end",
		"package p\nA map=atomic # of a type\n\tb\n": "",
	} {
		err := parse(map[typeName]map[string]line{}, text)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A version of a package that is like another one only lists differences.
func TestLike(t *testing.T) {
	table := map[typeName]map[string]line{}
	for _, text := range []string{
		"package p/v1\nA map=atomic\n\tb  list=set\n\tc  enum=X,Y\nB\n\td  list=set\n",
		"package p/v1beta1 like p/v1\nA\n\tc  optional\nC\n\te  list=atomic\n",
	} {
		if err := parse(table, text); err != nil {
			t.Fatal(err)
		}
	}
	a := table[typeName{"p/v1beta1", "A"}]
	if a[""].mark.Map != "atomic" || a["b"].mark.List != "set" || a["c"].mark.Enum != nil || !a["c"].mark.Optional {
		t.Errorf("A has %+v", a)
	}
	if c := table[typeName{"p/v1beta1", "C"}]; len(c) != 1 || c["e"].mark.List != "atomic" {
		t.Errorf("C has %+v", c)
	}
	if b, ok := table[typeName{"p/v1beta1", "B"}]; ok {
		t.Errorf("B, which is not named, has %+v", b)
	}
	if got := table[typeName{"p/v1", "A"}]["c"].mark.Enum; len(got) != 2 {
		t.Errorf("what it is like has changed: %q", got)
	}
}

// Defaults are set from the outside to the inside, those of the table first. Existing values stay,
// except empty ones that count as missing.
func TestFill(t *testing.T) {
	set := New(
		Default[corev1.Probe](func(obj map[string]any) { obj["order"] = []any{obj["periodSeconds"]} }),
		Default[corev1.ProbeHandler](func(obj map[string]any) { obj["handled"] = true }),
	)
	container := map[string]any{
		"name": "c", "ports": []any{map[string]any{"containerPort": int64(80)}, map[string]any{"protocol": "UDP"}},
		"livenessProbe": map[string]any{"periodSeconds": int64(5)},
	}
	set.Fill(reflect.TypeFor[corev1.Container](), container)
	want := map[string]any{
		"name": "c", "ports": []any{
			map[string]any{"containerPort": int64(80), "protocol": "TCP"}, map[string]any{"protocol": "UDP"},
		},
		"livenessProbe": map[string]any{
			"periodSeconds": int64(5), "timeoutSeconds": int64(1), "successThreshold": int64(1), "failureThreshold": int64(3),
			"order": []any{int64(5)}, "handled": true,
		},
	}
	for _, name := range []string{"ports", "livenessProbe"} {
		if d := cmp.Diff(want[name], container[name]); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A walk applies the table and the functions wherever a type occurs, with the path.
func TestWalk(t *testing.T) {
	set := New(
		On(func(c *Check, p *corev1.ContainerPort) {
			if p.Name == "no" {
				c.At("name").Invalid(p.Name, "is no name")
			}
		}),
		On(func(c *Check, e *corev1.EnvVarSource) { c.Forbidden("not here") }),
	)
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		MinReadySeconds: -1,
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{
			{}, {Ports: []corev1.ContainerPort{{}, {Name: "no"}}, Env: []corev1.EnvVar{{ValueFrom: &corev1.EnvVarSource{}}}},
		}}},
	}}
	c := NewCheck(t.Context(), &resource.Change{}, set)
	c.Walk(&d.Spec, "spec")
	want := []string{
		"spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
		"spec.template.spec.containers[1].env[0].valueFrom: Forbidden: not here",
		`spec.template.spec.containers[1].ports[1].name: Invalid value: "no": is no name`,
	}
	got := slices.DeleteFunc(messages(c), func(m string) bool { return !slices.Contains(want, m) })
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s\nof %q", d, messages(c))
	}
}

// A list with duplicates is walked, and a list that is too long is not.
func TestLists(t *testing.T) {
	for _, tt := range []struct {
		n    int
		want []string
	}{
		{1, []string{`pool.partitionSummary[0].type: Required value`}},
		{2, []string{
			`pool.partitionSummary[0].type: Required value`,
			`pool.partitionSummary[1].type: Required value`,
			`pool.partitionSummary[1]: Duplicate value: {"attribute":"a"}`,
		}},
		{33, []string{`pool.partitionSummary: Too many: 33: must have at most 32 items`}},
	} {
		pool := &resourcev1alpha3.PoolStatus{Generation: 1, PartitionSummary: make([]resourcev1alpha3.PartitionTypeStatus, tt.n)}
		for i := range pool.PartitionSummary {
			pool.PartitionSummary[i].Attribute = "a"
		}
		c := NewCheck(t.Context(), &resource.Change{}, New())
		c.Walk(pool, "pool")
		if d := cmp.Diff(tt.want, messages(c)); d != "" {
			t.Errorf("%d (-want +got):\n%s", tt.n, d)
		}
	}
}

// Errors show values as kube-apiserver has them internally: all fields, by Go name.
func TestShown(t *testing.T) {
	c := NewCheck(t.Context(), &resource.Change{}, New())
	c.At("taint").Invalid(corev1.Taint{Key: "k"}, "is wrong")
	c.At("taints", 1).Duplicate(&corev1.Taint{Key: "k"})
	c.At("labels").AtKey("a").Invalid(map[string]string{"a": "b"}, "is wrong")
	want := []string{
		`labels[a]: Invalid value: {"a":"b"}: is wrong`,
		`taint: Invalid value: {"Key":"k","Value":"","Effect":"","TimeAdded":null}: is wrong`,
		`taints[1]: Duplicate value: {"Key":"k","Value":"","Effect":"","TimeAdded":null}`,
	}
	if d := cmp.Diff(want, messages(c)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Given finds the last value of a type.
func TestGiven(t *testing.T) {
	type names struct{ of []string }
	c := NewCheck(t.Context(), &resource.Change{}, New())
	With(c, &names{[]string{"a"}})
	With(c.At("spec"), &names{[]string{"b"}})
	if got := Given[names](c.At("x", 1)).of; !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q", got)
	}
	if got := Given[int](c); *got != 0 {
		t.Errorf("%d", *got)
	}
}
