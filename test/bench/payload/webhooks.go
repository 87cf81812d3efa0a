package payload

import (
	"encoding/json"
	"fmt"
)

// Webhook is a configuration with one validating webhook at a URL, for creates in a group.
func Webhook(n int, group, url string, ca []byte) Part {
	body, err := json.Marshal(object{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": object{"name": fmt.Sprintf("webhook-%d", n)},
		"webhooks": []object{{
			"name": fmt.Sprintf("webhook-%d.example.com", n), "admissionReviewVersions": []string{"v1"}, "sideEffects": "None",
			"clientConfig": object{"url": url, "caBundle": ca},
			"rules":        []object{{"operations": []string{"CREATE"}, "apiGroups": []string{group}, "apiVersions": []string{"*"}, "resources": []string{"*"}}},
		}},
	})
	if err != nil {
		panic(err) // these values always marshal
	}
	return Part{Path: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", Body: body}
}
