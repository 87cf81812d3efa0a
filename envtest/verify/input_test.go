package verify

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var widgetKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// widgets defines Widgets with a size, a color, and labels for a Secret.
func widgets() *apiextensionsv1.CustomResourceDefinition {
	one, three := 1.0, 3.0
	field := func(of string) apiextensionsv1.JSONSchemaProps { return apiextensionsv1.JSONSchemaProps{Type: of} }
	size := field("integer")
	size.Minimum, size.Maximum = &one, &three
	color := field("string")
	color.Enum = []apiextensionsv1.JSON{{Raw: []byte(`"red"`)}, {Raw: []byte(`"blue"`)}}
	names := field("array")
	text := field("string")
	names.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &text}
	spec := field("object")
	spec.Properties = map[string]apiextensionsv1.JSONSchemaProps{"size": size, "color": color, "names": names, "on": field("boolean")}
	spec.Required = []string{"size"}
	whole := field("object")
	whole.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": spec, "status": field("object")}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "widgets.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "widgets", Singular: "widget", Kind: "Widget", ListKind: "WidgetList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &whole},
			}},
		},
	}
}

func widget(spec map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	u.SetGroupVersionKind(widgetKind)
	u.SetNamespace("default")
	u.SetName("w")
	return u
}

// The inputs of a field are its bounds, the values of its enum, and its absence.
func TestInputs(t *testing.T) {
	s := widgets().Spec.Versions[0].Schema.OpenAPIV3Schema
	list := func(samples ...any) string {
		var got []string
		for _, in := range inputs(s, widget(map[string]any{"size": int64(2), "color": "red", "names": []any{"a", "b"}}), samples) {
			got = append(got, in.String())
		}
		return strings.Join(got, ", ")
	}
	want := `spec.color="blue", without spec.color, spec.names=[], spec.names=["a"], spec.names.0="", spec.names.0="other", ` +
		`without spec.names, spec.on=true, spec.size=1, spec.size=3`
	if got := list(); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	one := widget(map[string]any{"size": int64(7), "color": "blue", "names": []any{"c"}, "unknown": "x"})
	other := widget(map[string]any{"size": int64(3), "names": []any{"a", "b"}})
	want = `spec.color="blue", without spec.color, spec.names=[], spec.names=["a"], spec.names.0="", spec.names.0="other", spec.names=["c"], ` +
		`without spec.names, spec.on=true, spec.size=1, spec.size=3, spec.size=7`
	if got := list(one.Object, other.Object); got != want {
		t.Errorf("with samples: %s\nwant %s", got, want)
	}
}

// The values of samples are tried. Those that the schema does not allow are rejected.
func TestSamples(t *testing.T) {
	named := func(name string, u *unstructured.Unstructured) *unstructured.Unstructured { u.SetName(name); return u }
	w := World{
		Start: widgetManager(func(_ string, _ bool, s *corev1.Secret) { metav1.SetMetaDataLabel(&s.ObjectMeta, "a", "b") }),
		CRDs:  []*apiextensionsv1.CustomResourceDefinition{widgets()}, Inputs: true, Faults: []FaultKind{Input},
		Samples: []client.Object{named("sample", widget(map[string]any{"size": int64(7), "names": []any{"c", "d"}})), configMap("m", nil)},
	}
	r := Explore(t, w, func(s *Scenario) { s.Apply(widget(map[string]any{"size": int64(2), "color": "red"})) })
	w.Samples, w.CRDs = nil, []*apiextensionsv1.CustomResourceDefinition{widgets()}
	without := Explore(t, w, func(s *Scenario) { s.Apply(widget(map[string]any{"size": int64(2), "color": "red"})) })
	if len(r.Findings) > 0 || r.Plans != without.Plans+2 || r.Missed > 0 {
		t.Errorf("%v, without samples %v; %v", r, without, r.Findings)
	}
}

// widgetManager is a controller that copies the color of a Widget to a Secret.
func widgetManager(copyColor func(color string, found bool, s *corev1.Secret)) func(context.Context, *rest.Config) error {
	return func(ctx context.Context, c *rest.Config) error {
		m, err := ctrl.NewManager(c, managerOptions())
		if err != nil {
			return err
		}
		of := &unstructured.Unstructured{}
		of.SetGroupVersionKind(widgetKind)
		err = ctrl.NewControllerManagedBy(m).Named("widgets").For(of).Complete(reconcile.Func(
			func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
				w := of.DeepCopy()
				if err := m.GetClient().Get(ctx, r.NamespacedName, w); err != nil {
					return reconcile.Result{}, client.IgnoreNotFound(err)
				}
				s := &corev1.Secret{}
				s.Namespace, s.Name = r.Namespace, r.Name
				err := m.GetAPIReader().Get(ctx, r.NamespacedName, s)
				missing := apierrors.IsNotFound(err)
				if err != nil && !missing {
					return reconcile.Result{}, err
				}
				color, found, _ := unstructured.NestedString(w.Object, "spec", "color")
				before := s.DeepCopy()
				copyColor(color, found, s)
				if missing {
					return reconcile.Result{}, client.IgnoreAlreadyExists(m.GetClient().Create(ctx, s))
				}
				return reconcile.Result{}, m.GetClient().Patch(ctx, s, client.MergeFrom(before))
			}))
		if err != nil {
			return err
		}
		return m.Start(ctx)
	}
}

// A controller that never removes a label is found by a value that comes and goes.
func TestInputsFindTraces(t *testing.T) {
	play := func(s *Scenario) {
		s.Apply(widget(map[string]any{"size": int64(2), "color": "red"}))
		s.Settle()
	}
	for name, c := range map[string]struct {
		copyColor func(string, bool, *corev1.Secret)
		text      string
	}{
		"a label for each color": {func(color string, found bool, s *corev1.Secret) {
			if found {
				metav1.SetMetaDataLabel(&s.ObjectMeta, color, "yes")
			}
		}, `labels.blue is "yes"; without faults it is missing`},
		"a panic without a color": {func(color string, _ bool, s *corev1.Secret) {
			metav1.SetMetaDataLabel(&s.ObjectMeta, "letter", color[:1])
		}, "slice bounds out of range"},
		"one label": {func(color string, _ bool, s *corev1.Secret) { metav1.SetMetaDataLabel(&s.ObjectMeta, "color", color) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, World{
				Start: widgetManager(c.copyColor), CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets()}, Inputs: true, Plans: 40, Findings: 1,
			}, play)
			if c.text == "" && len(r.Findings) > 0 {
				t.Error(r.Findings[0])
			}
			if c.text != "" && (len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Text, c.text) || r.Findings[0].Plan[0].Kind != Input) {
				t.Errorf("%d plans: %v", r.Plans, r.Findings)
			}
		})
	}
}

// The values of each applied state have plans of their own.
func TestInputsOfEachState(t *testing.T) {
	defer bubble{t}.begin()()
	w := World{
		Start: widgetManager(func(string, bool, *corev1.Secret) {}), CRDs: []*apiextensionsv1.CustomResourceDefinition{widgets()},
		Inputs: true, Faults: []FaultKind{Input},
	}
	once := func(s *Scenario) {
		s.Apply(widget(map[string]any{"size": int64(2), "color": "red"}))
		s.Settle()
	}
	_, first := learned(t, w, once)
	w.CRDs = []*apiextensionsv1.CustomResourceDefinition{widgets()}
	x, both := learned(t, w, func(s *Scenario) {
		once(s)
		s.Apply(widget(map[string]any{"size": int64(3), "color": "red"}))
		s.Settle()
		s.Apply(widget(map[string]any{"size": int64(1), "color": "red"}))
		s.Delete(widget(nil)) // is no input
	})
	if len(first) == 0 || len(both) != 2*len(first) {
		t.Fatalf("%d and %d plans", len(first), len(both))
	}
	last := Plan{{Kind: Input, Resource: both[0][0].Resource, At: len(both)}}
	if r := x.once(t, last); r.problem != nil || len(r.missed()) > 0 {
		t.Errorf("%v, missed: %v", r.problem, r.missed())
	}
}

// A controller that knows the names of what it has done misses an object that is deleted and made again.
func TestRecreate(t *testing.T) {
	byName := planted{life: func() reconciler {
		done := map[string]bool{}
		return func(ctx context.Context, c client.Client, m *corev1.ConfigMap) (ctrl.Result, error) {
			if done[m.Name] || m.DeletionTimestamp != nil {
				return ctrl.Result{}, nil
			}
			for i := range 2 {
				if err := client.IgnoreAlreadyExists(c.Create(ctx, owned(c, m, secret(m, fmt.Sprint(m.Name, i))))); err != nil {
					return ctrl.Result{}, err
				}
			}
			done[m.Name] = true
			return ctrl.Result{}, nil
		}
	}}
	for name, c := range map[string]struct {
		start func(context.Context, *rest.Config) error
		found bool
	}{"by name": {byName.start, true}, "correct": {reconciler(children).start, false}} {
		t.Run(name, func(t *testing.T) {
			r := Explore(t, World{Start: c.start, Inputs: true, Plan: "recreate:2"}, applyOne)
			if found := len(r.Findings) > 0; found != c.found {
				t.Error(r.Findings)
			}
		})
	}
}
