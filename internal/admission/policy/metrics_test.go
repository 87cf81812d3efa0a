package policy_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// collected returns all series: the name, and the label values sorted by label name.
func (w *world) collected() (all []string) {
	w.Helper()
	registered := prometheus.NewRegistry()
	registered.MustRegister(append(w.metrics.Collectors(), w.counted.Collectors()...)...)
	families, err := registered.Gather()
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			said := []string{strings.TrimPrefix(f.GetName(), "apiserver_")}
			for _, label := range m.GetLabel() {
				said = append(said, label.GetValue())
			}
			count := m.GetCounter().GetValue()
			if h := m.GetHistogram(); h != nil {
				count = float64(h.GetSampleCount())
			}
			all = append(all, fmt.Sprint(strings.Join(said, " "), " ", count))
		}
	}
	slices.Sort(all)
	return all
}

// Each write is counted as in Kubernetes: errors and actions of bindings, not validations that
// pass.
func TestMetrics(t *testing.T) {
	const (
		// The label values are enforcement_action, error_type, policy, policy_binding.
		checks, took = "validating_admission_policy_check_total ", "validating_admission_policy_check_duration_seconds "
		// The label values are error_type, policy, policy_binding.
		mutations, mutated = "mutating_admission_policy_check_total ", "mutating_admission_policy_check_duration_seconds "
		// The label values are kind, name, operation, type.
		conditions, broken = "admission_match_condition_evaluation_seconds ", "admission_match_condition_evaluation_errors_total "
	)
	both := func(a, b, labels string) []string { return []string{b + labels, a + labels} }
	const ten = `[1,2,3,4,5,6,7,8,9,10]`
	// dear is a validation that costs nine hundredths of the budget, and little time. One may cost a tenth.
	dear := `{expression: '` + ten + `.all(a, ` + ten + `.all(b, !"` + strings.Repeat("a", 1000) + `".contains("` + strings.Repeat("b", 900) + `")))'}, `
	tests := []struct {
		name, policy, binding string
		want                  []string
	}{
		{"true", `validations: [{expression: 'true'}]`, `validationActions: [Deny]`, nil},
		{"denied", `validations: [{expression: 'false'}, {expression: 'true'}]`, `validationActions: [Deny]`, both(checks, took, "deny invalid_error p p 1")},
		{"warned and audited", `validations: [{expression: 'false'}]`, `validationActions: [Warn, Audit]`,
			append(both(checks, took, "audit invalid_error p p 1"), both(checks, took, "warn invalid_error p p 1")...)},
		{"an error", `validations: [{expression: 'object.no == 1'}]`, `validationActions: [Deny]`, both(checks, took, "deny invalid_error p p 1")},
		{"an error that is ignored", `failurePolicy: Ignore, validations: [{expression: 'object.no == 1'}]`, `validationActions: [Deny]`, both(checks, took, "allow invalid_error p p 1")},
		{"out of budget", `validations: [` + strings.Repeat(dear, 12) + `]`, `validationActions: [Deny]`, both(checks, took, "deny out_of_budget p p 1")},
		{"an annotation that fails", `auditAnnotations: [{key: a, valueExpression: 'string(object.no)'}]`, `validationActions: [Deny]`, both(checks, took, "deny invalid_error p p 1")},
		{"conditions", `matchConditions: [{name: a, expression: 'object.no == 1'}, {name: b, expression: 'false'}], validations: [{expression: 'false'}]`, `validationActions: [Deny]`,
			[]string{broken + "policy p CREATE validate 1", conditions + "policy p CREATE validate 1"}},
		{"a mutation", `mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{}'}}]`, "", both(mutations, mutated, "no_error p p 1")},
		{"a mutation that fails", `failurePolicy: Ignore, mutations: [{patchType: ApplyConfiguration, applyConfiguration: {expression: 'Object{no: "a"}'}}]`, "", both(mutations, mutated, "invalid_error p p 1")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			if strings.Contains(test.policy, "mutations") {
				w.write(fmt.Sprintf(mutating, "p", test.policy), fmt.Sprintf(mutatingBinding, "p", "paramRef: null"))
			} else {
				w.write(fmt.Sprintf(validating, "p", test.policy), fmt.Sprintf(validatingBinding, "p", test.binding))
			}
			_, _ = w.create(configMap) // other tests check the result
			slices.Sort(test.want)
			if got := w.collected(); !slices.Equal(got, test.want) {
				t.Errorf("%q\nwant\n%q", got, test.want)
			}
		})
	}
}
