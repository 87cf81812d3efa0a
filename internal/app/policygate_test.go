package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// Without its feature gate, a mutating policy is stored, and changes nothing.
func TestMutatingPolicyWithoutItsGate(t *testing.T) {
	for _, on := range []bool{true, false} {
		a := start(t, Options{Gates: gate.With(map[gate.Name]bool{gate.MutatingAdmissionPolicy: on})})
		const policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
		asked(t, a, http.MethodPost, policies, `{"metadata":{"name":"p"},"spec":{
			"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},
			"reinvocationPolicy":"Never",
			"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"}}]}}`, http.StatusCreated)
		asked(t, a, http.MethodPost, policies[:len(policies)-len("policies")]+"policybindings", `{"metadata":{"name":"p"},"spec":{"policyName":"p"}}`, http.StatusCreated)
		made := asked(t, a, http.MethodPost, "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"a"}}`, http.StatusCreated)
		if strings.Contains(made, `"by":"policy"`) != on {
			t.Errorf("gate %v: %s", on, made)
		}
	}
}
