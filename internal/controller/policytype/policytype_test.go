package policytype

import (
	"fmt"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/controllertest"
	"github.com/anykind/anykind/internal/object"
)

// The status of a policy has warnings about its expressions.
func TestWarnings(t *testing.T) {
	const rules = `matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [%s]}]}, `
	tests := []struct {
		name, resources, spec string
		want                  []string // substrings of warnings, each after its field
	}{
		{"right", "deployments", `validations: [{expression: "object.spec.replicas > 1"}]`, nil},
		{"no such field", "deployments", `validations: [{expression: "object.spec.foo > 1"}]`, []string{"spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'foo'"}},
		{"of one of two kinds", "deployments, daemonsets", `validations: [{expression: "true"}, {expression: "object.spec.replicas > 1", messageExpression: "string(object.spec.replicas)"}]`,
			[]string{"spec.validations[1].expression: apps/v1, Kind=DaemonSet: ERROR: <input>:1:12: undefined field 'replicas'", "spec.validations[1].messageExpression: apps/v1, Kind=DaemonSet: "}},
		{"a variable has a type", "deployments", `variables: [{name: r, expression: object.spec.replicas}], validations: [{expression: "variables.r == 'a'"}]`, []string{"spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'"}},
		{"parameters have one", "deployments", `paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: "params.dada == 'a'"}]`, []string{"undefined field 'dada'"}},
		{"nothing is known of all kinds", "'*'", `validations: [{expression: "object.spec.foo > 1"}]`, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			controllertest.In(t, []controller.Descriptor{{Name: Name, New: New}}, func(w *controllertest.World) {
				w.Store("validatingadmissionpolicy p", "{metadata: {generation: 1}, spec: {"+strings.Replace(rules, "%s", test.resources, 1)+test.spec+"}}")
				w.Wait()
				status := kind.Tree(w.Get("validatingadmissionpolicy p"), "status")
				if fmt.Sprint(status["observedGeneration"]) != "1" {
					w.T.Fatalf("%v", status)
				}
				warnings := kind.List(status, "typeChecking", "expressionWarnings")
				if len(warnings) != len(test.want) {
					w.T.Fatalf("%v, want %q", warnings, test.want)
				}
				for i, one := range warnings {
					warning := one.(object.Tree)
					if got := warning["fieldRef"].(string) + ": " + warning["warning"].(string); !strings.Contains(got, test.want[i]) {
						w.T.Errorf("%s\nwant\n%s", got, test.want[i])
					}
				}
			})
		})
	}
}
