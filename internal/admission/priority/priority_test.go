package priority_test

import (
	"strings"
	"testing"

	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/anykind/anykind/internal/admission/admissiontest"
	"github.com/anykind/anykind/internal/admission/priority"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/store/stored"
)

const classes = `{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: high}, value: 1000}
---
{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: low}, value: -5, preemptionPolicy: Never}`

func world(t *testing.T, have string) *admissiontest.World { return worldWithGates(t, nil, have) }

func worldWithGates(t *testing.T, gates *gate.Set, have string) *admissiontest.World {
	w := admissiontest.NewWithGates(t, gates, func(w *admissiontest.World) []any {
		return []any{&priority.Plugin{Classes: stored.List[schedulingv1.PriorityClass](w.Cache, w.Kinds, schedulingv1.Resource("priorityclasses"))}}
	})
	w.Have(have)
	return w
}

func pod(spec string) string {
	return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + spec + " containers: [{name: c, image: i}]}}"
}

// A new pod gets the class, the priority and the preemption policy, or an error.
func TestPods(t *testing.T) {
	const global = classes + "\n---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: all}, value: 7, globalDefault: true}"
	tests := []struct{ name, have, spec, want string }{
		{"no class", classes, ``, ` 0 "PreemptLowerPriority"`},
		{"a class", classes, `priorityClassName: high,`, `"high" 1000 "PreemptLowerPriority"`},
		{"a class with another policy", classes, `priorityClassName: low,`, `"low" -5 "Never"`},
		{"the class that is the default", global, ``, `"all" 7 "PreemptLowerPriority"`},
		{"another than the default", global, `priorityClassName: low,`, `"low" -5 "Never"`},
		{"the same as the class says", classes, `priorityClassName: low, priority: -5, preemptionPolicy: Never,`, `"low" -5 "Never"`},
		{"another number", classes, `priorityClassName: high, priority: 3,`,
			`pods "p" is forbidden: the integer value of priority (3) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name`},
		{"another policy", classes, `preemptionPolicy: Never,`,
			`pods "p" is forbidden: the string value of PreemptionPolicy (Never) must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name`},
		{"no such class", classes, `priorityClassName: none,`, `pods "p" is forbidden: no PriorityClass with name none was found`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			made, err := world(t, test.have).Create(pod(test.spec))
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = strings.Join([]string{admissiontest.Field(made, "spec.priorityClassName"), admissiontest.Field(made, "spec.priority"), admissiontest.Field(made, "spec.preemptionPolicy")}, " ")
			}
			if got != test.want {
				t.Errorf("%s\nwant\n%s", got, test.want)
			}
		})
	}
}

// A new group gets the same from its class. With the gate of preemption policies, a group without a policy has the
// default policy. The policy of its class can be another one.
func TestGroups(t *testing.T) {
	const group = `schedulingPolicy: {basic: {}}, workloadRef: {workloadName: w, templateName: t},`
	kinds := map[string]string{
		"pod group":           "apiVersion: scheduling.k8s.io/v1beta1, kind: PodGroup",
		"composite pod group": "apiVersion: scheduling.k8s.io/v1alpha3, kind: CompositePodGroup",
	}
	plural := map[string]string{"pod group": "podgroups", "composite pod group": "compositepodgroups"}
	on := map[gate.Name]bool{gate.GenericWorkload: true, gate.CompositePodGroup: true}
	policies := map[gate.Name]bool{gate.GenericWorkload: true, gate.CompositePodGroup: true, gate.PodGroupPreemptionPolicy: true}
	for _, test := range []struct {
		name       string
		gates      map[gate.Name]bool
		spec, want string
	}{
		{"no class", on, ``, ` 0 `},
		{"a class", on, `priorityClassName: low`, `"low" -5 `},
		{"the same as the class says", on, `priorityClassName: low, priority: -5`, `"low" -5 `},
		{"gates that are off", nil, `priorityClassName: low`, `"low"  `},
		{"another number", on, `priorityClassName: high, priority: 3`, `priority set in the KIND (3) must match the priority computed (1000) based on the priority class set in the spec`},
		{"no such class", on, `priorityClassName: none`, `no PriorityClass with name none was found`},
		{"a policy", policies, `priorityClassName: high`, `"high" 1000 "PreemptLowerPriority"`},
		{"the policy of the class", policies, `priorityClassName: low, preemptionPolicy: Never`, `"low" -5 "Never"`},
		{"another policy", policies, `priorityClassName: low`,
			`the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in KIND spec; priority admission controller computed Never from the given PriorityClass name`},
	} {
		for called, kind := range kinds {
			made, err := worldWithGates(t, gate.With(test.gates), classes).Create("{" + kind + ", metadata: {name: g}, spec: {" + group + test.spec + "}}")
			var got string
			if err != nil {
				_, got, _ = strings.Cut(err.Error(), plural[called]+`.scheduling.k8s.io "g" is forbidden: `)
			} else {
				got = strings.Join([]string{admissiontest.Field(made, "spec.priorityClassName"), admissiontest.Field(made, "spec.priority"), admissiontest.Field(made, "spec.preemptionPolicy")}, " ")
			}
			if want := strings.ReplaceAll(test.want, "KIND", called); got != want {
				t.Errorf("%s, %s: %s (%v), want %s", called, test.name, got, err, want)
			}
		}
	}
}

// An update that omits the priority keeps it.
func TestKeeps(t *testing.T) {
	w := world(t, classes)
	w.Have(pod(`priorityClassName: high,`))
	p, err := w.Update("{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: b}}, spec: {priority: null, preemptionPolicy: null}}", "")
	if err != nil || admissiontest.Field(p, "spec.priority") != "1000" || admissiontest.Field(p, "spec.preemptionPolicy") != `"PreemptLowerPriority"` {
		t.Errorf("%v, %v", p["spec"], err)
	}
}

// There is one default class. It can be updated.
func TestOneDefault(t *testing.T) {
	w := world(t, classes)
	set := func(name string) string {
		_, err := w.Update("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: "+name+", labels: {a: b}}, globalDefault: true}", "")
		if err != nil {
			return err.Error()
		}
		return ""
	}
	const refused = "is forbidden: PriorityClass high is already marked as default. Only one default can exist"
	if said := set("high"); said != "" {
		t.Error(said)
	}
	if said := set("high"); said != "" {
		t.Error(said)
	}
	if said := set("low"); said != `priorityclasses.scheduling.k8s.io "low" `+refused {
		t.Error(said)
	}
	_, err := w.Create("{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: other}, value: 1, globalDefault: true}")
	if err == nil || err.Error() != `priorityclasses.scheduling.k8s.io "other" `+refused {
		t.Error(err)
	}
}
