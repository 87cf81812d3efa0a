package payload

import "fmt"

const policiesAPI = "/apis/admissionregistration.k8s.io/v1"

// Policy is the nth ValidatingAdmissionPolicy for Widgets of a group, with its binding. It denies only
// the Widget with the number Probed.
func Policy(n int, group string) []Part { return policy(fmt.Sprintf("bench-%03d", n), group) }

// StaticPolicies is a file with policies like Policy for a folder of manifests.
func StaticPolicies(count int, group string) (file []byte) {
	for n := range count {
		for _, part := range policy(fmt.Sprintf("bench-%03d.static.k8s.io", n), group) {
			file = append(append(append(file, "---\n"...), part.Body...), '\n')
		}
	}
	return file
}

func policy(name, group string) []Part {
	return []Part{
		{policiesAPI + "/validatingadmissionpolicies", encode(object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": object{"name": name},
			"spec": object{
				"matchConstraints": object{"resourceRules": []object{{
					"apiGroups": []string{group}, "apiVersions": []string{"*"}, "operations": []string{"CREATE", "UPDATE"}, "resources": []string{Plural},
				}}},
				"variables": []object{{"name": "name", "expression": "object.metadata.name"}},
				"validations": []object{
					{"expression": fmt.Sprintf("variables.name != '%s'", Name(Probed)), "message": ProbeRefused},
					{"expression": "object.spec.all(field, field != 'none')"},
				},
			},
		})},
		{policiesAPI + "/validatingadmissionpolicybindings", encode(object{
			"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": object{"name": name},
			"spec": object{"policyName": name, "validationActions": []string{"Deny"}},
		})},
	}
}

// Probed is the number of a Widget that a Policy denies with the message ProbeRefused. It shows
// whether the policy is in force.
const (
	Probed       = 99_999_999
	ProbeRefused = "it is a probe"
)
