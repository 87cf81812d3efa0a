package builtin

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// writeWithGates is write with feature gates.
func writeWithGates(t *testing.T, gates map[gate.Name]bool, plural string, obj, old map[string]any) (map[string]any, field.ErrorList) {
	t.Helper()
	set := gate.With(gates)
	all := Dependencies{Gates: set}.Definitions()
	d := all[slices.IndexFunc(all, func(d *resource.Definition) bool { return d.Plural == plural })]
	v := d.Versions[0]
	obj, _, err := v.Schema.Complete(obj)
	if err != nil {
		t.Fatal(err)
	}
	c := &resource.Change{Object: obj, Old: old, Gates: set}
	if v.Revert != nil {
		v.Revert(t.Context(), c)
	}
	d.Prepare(t.Context(), c)
	return obj, d.Validate(t.Context(), c)
}

// Errors of groups of pods and their templates are those of a v1.37 server. An update does not validate what it leaves
// unchanged.
func TestGroups(t *testing.T) {
	all := map[gate.Name]bool{
		gate.GenericWorkload: true, gate.TopologyAwareWorkloadScheduling: true, gate.CompositePodGroup: true,
		gate.PodGroupPreemptionPolicy: true, gate.DRAWorkloadResourceClaims: true,
	}
	const (
		basic  = `schedulingPolicy: {basic: {}}`
		gang   = `schedulingPolicy: {gang: {minCount: 2}}`
		one    = `{podGroupTemplates: [{name: a, ` + basic + `}]}`
		nested = `{compositePodGroupTemplates: [{name: o, ` + basic + `, compositePodGroupTemplates: [{name: i, ` + basic + `, podGroupTemplates: [{name: a, ` + basic + `}]}]}]}`
	)
	for _, tt := range []struct {
		plural    string
		gates     map[gate.Name]bool
		old, spec string
		want      []string
	}{
		{"workloads", all, "", one, nil},
		{"workloads", all, "", nested, nil},
		{"workloads", nil, "", nested, []string{"spec: Invalid value: \"\": must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"}},
		{"workloads", all, "", `{podGroupTemplates: [{name: a, ` + basic + `}, {name: a, ` + gang + `}]}`, []string{
			`spec.podGroupTemplates[1]: Duplicate value: {"name":"a","schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":null}`,
		}},
		{"workloads", all, "", `{podGroupTemplates: [{name: a, ` + basic + `, priority: 1}, {name: b, ` + basic + `}]}`, []string{
			"spec: Invalid value: null: detected multiple priority configurations",
		}},
		{"workloads", all, "", `{compositePodGroupTemplates: [{name: o, ` + basic + `}]}`, []string{
			`spec.compositePodGroupTemplates[0]: Invalid value: "o": must have at least one child PodGroupTemplate or CompositePodGroupTemplate`,
		}},
		{"workloads", all, "", `{podGroupTemplates: [{name: A_, schedulingPolicy: {}, resourceClaims: [{name: d}]}]}`, []string{
			`spec.podGroupTemplates[0].name: Invalid value: "A_": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`,
			"spec.podGroupTemplates[0].resourceClaims[0]: Invalid value: \"\": must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
			"spec.podGroupTemplates[0].schedulingPolicy: Invalid value: \"\": must specify one of: `basic`, `gang`",
		}},
		{"workloads", all, one, `{podGroupTemplates: [{name: b, ` + basic + `}]}`, []string{
			"spec.podGroupTemplates: Forbidden: item may not be removed", "spec.podGroupTemplates[0]: Forbidden: item may not be added",
		}},
		{"workloads", all, one, `{podGroupTemplates: [{name: a, ` + basic + `, priorityClassName: high}]}`, []string{
			"spec.podGroupTemplates[0].priorityClassName: Invalid value: null: field is immutable",
		}},
		{"workloads", all, `{podGroupTemplates: [{name: A_, ` + gang + `}]}`, `{podGroupTemplates: [{name: A_, schedulingPolicy: {gang: {minCount: 3}}}]}`, nil},
		{"podgroups", all, "", `{` + gang + `}`, nil},
		{"podgroups", all, "", `{` + gang + `, parentCompositePodGroupName: p}`, []string{
			"spec.workloadRef: Required value: must be set when parentCompositePodGroupName is set",
		}},
		{"podgroups", all, `{` + gang + `}`, `{schedulingPolicy: {gang: {minCount: 0}}}`, []string{"spec.schedulingPolicy.gang.minCount: Required value"}},
		{"podgroups", all, `{` + gang + `}`, `{` + basic + `}`, []string{
			"spec.schedulingPolicy.basic: Invalid value: null: field is immutable", "spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set",
		}},
		{"podgroups", nil, `{` + gang + `, schedulingConstraints: {topology: [{key: a}]}}`, `{` + gang + `, schedulingConstraints: {topology: [{key: b}]}}`, []string{
			"spec.preemptionPolicy: Invalid value: null: field is immutable", "spec.schedulingConstraints: Forbidden",
		}},
		{"compositepodgroups", all, "", `{schedulingPolicy: {gang: {minGroupCount: 1}}}`, []string{"spec.workloadRef: Required value"}},
	} {
		object := func(spec string) map[string]any {
			apiVersion := "scheduling.k8s.io/v1beta1"
			if tt.plural == "compositepodgroups" {
				apiVersion = "scheduling.k8s.io/v1alpha3"
			}
			return read(t, `{apiVersion: `+apiVersion+`, metadata: {name: a, namespace: a}, spec: `+spec+`}`)
		}
		var old map[string]any
		if tt.old != "" {
			old, _ = writeWithGates(t, all, tt.plural, object(tt.old), nil)
		}
		_, errs := writeWithGates(t, tt.gates, tt.plural, object(tt.spec), old)
		got := messages(errs)
		slices.Sort(got)
		same(t, tt.plural+" "+tt.spec, got, tt.want)
	}
}

// A template keeps the fields of gates that are off if it had them. The default of a policy needs its gate.
func TestGatesOfGroups(t *testing.T) {
	on := map[gate.Name]bool{gate.PodGroupPreemptionPolicy: true}
	template := func(name, more string) string {
		return `{name: ` + name + `, schedulingPolicy: {basic: {}}, ` + more + `}`
	}
	workload := func(templates ...string) map[string]any {
		text := ""
		for _, s := range templates {
			text += s + ", "
		}
		return read(t, `{apiVersion: scheduling.k8s.io/v1beta1, kind: Workload, metadata: {name: a, namespace: a}, spec: {podGroupTemplates: [`+text+`]}}`)
	}
	old, _ := writeWithGates(t, on, "workloads", workload(template("a", "preemptionPolicy: Never"), template("b", "")), nil)
	obj, errs := writeWithGates(t, nil, "workloads", workload(template("a", "preemptionPolicy: Never"), template("b", "preemptionPolicy: Never, schedulingConstraints: {topology: [{key: k}]}")), old)
	same(t, "a workload", obj["spec"], old["spec"])
	same(t, "errors", messages(errs), []string(nil))

	group := `{apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup, metadata: {name: a, namespace: a}, spec: {schedulingPolicy: {basic: {}}}}`
	for _, gates := range []map[gate.Name]bool{nil, on} {
		obj, _ := writeWithGates(t, gates, "podgroups", read(t, group), nil)
		want := map[string]any{"schedulingPolicy": map[string]any{"basic": map[string]any{}}, "disruptionMode": map[string]any{"single": map[string]any{}}}
		if gates != nil {
			want["preemptionPolicy"] = "PreemptLowerPriority"
		}
		same(t, "a group", obj["spec"], want)
	}
}

// Kinds with a gate are served only if it is on.
func TestServedGates(t *testing.T) {
	for _, text := range []string{"", "scheduling.k8s.io/v1beta1=true", "api/all=true"} {
		for _, on := range []bool{false, true} {
			var config RuntimeConfig
			if err := config.Set(text); err != nil {
				t.Fatal(err)
			}
			all := Definitions()
			if err := config.Apply(all, gate.With(map[gate.Name]bool{gate.GenericWorkload: on})); err != nil {
				t.Fatal(err)
			}
			served := slices.ContainsFunc(all, func(d *resource.Definition) bool { return d.Plural == "podgroups" && d.Version("v1beta1").Served })
			if served != (on && text != "") {
				t.Errorf("%q, %t: %t", text, on, served)
			}
		}
	}
}
