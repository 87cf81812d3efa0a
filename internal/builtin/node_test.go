package builtin

import (
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// Errors of RuntimeClasses are those of kube-apiserver.
func TestRuntimeClasses(t *testing.T) {
	for _, tt := range []struct {
		old, class string
		want       []string
	}{
		{"", `{handler: runc, scheduling: {nodeSelector: {a: b}, tolerations: [{key: a, operator: Exists}]}, overhead: {podFixed: {cpu: 10m}}}`, nil},
		{"", `{}`, []string{"handler: Required value"}},
		{`{handler: runc}`, `{handler: runsc}`, []string{"handler: Invalid value: null: field is immutable"}},
		{`{handler: runc}`, `{handler: a.b}`, []string{"handler: Invalid value: null: field is immutable", `handler: Invalid value: "a.b": must not contain dots`}},
		{"", `{handler: runc, overhead: {podFixed: {cpu: -1}}}`, []string{`overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`}},
		{"", `{handler: runc, scheduling: {tolerations: [{key: a, operator: Exists, effect: NoExecute}, {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]}}`, []string{
			`scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"NoExecute","TolerationSeconds":1}`,
		}},
	} {
		d := definition(t, "runtimeclasses")
		class := func(fields string) map[string]any {
			obj := read(t, fields)
			obj["apiVersion"], obj["kind"], obj["metadata"] = "node.k8s.io/v1", "RuntimeClass", map[string]any{"name": "a"}
			return obj
		}
		var old map[string]any
		if tt.old != "" {
			old, _ = write(t, d, class(tt.old), nil)
		}
		_, errs := write(t, d, class(tt.class), old)
		same(t, tt.class, messages(errs), tt.want)
	}
}

// The gate of numeric operators is about pods: a RuntimeClass has none.
func TestRuntimeClassComparesNothing(t *testing.T) {
	on := map[gate.Name]bool{gate.TaintTolerationComparisonOperators: true}
	_, errs := writeWithGates(t, on, "runtimeclasses", read(t, `{apiVersion: node.k8s.io/v1, kind: RuntimeClass, metadata: {name: a}, handler: runc,
		scheduling: {tolerations: [{key: a, operator: Gt, value: "1"}]}}`), nil)
	same(t, "errors", messages(errs), []string{`scheduling.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", "Lt", "Gt"`})
}
