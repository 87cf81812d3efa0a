package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/gate"
)

// A token can be bound to webhooks if the gate APIServerWebhookAuthenticationToken is on, and the account may attest the API group.
// It ends with the configuration.
func TestTokensForWebhooks(t *testing.T) {
	const configurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	request := func(group, audience string) string {
		return fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"audiences":[%q],"expirationSeconds":3600,"attestations":{"admissionReviewAPIGroups":[%q]},`+
			`"boundObjectRef":{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","name":"v"}}}`, audience, group)
	}
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprint(on), func(t *testing.T) {
			a := start(t, Options{Gates: gate.With(map[gate.Name]bool{gate.APIServerWebhookAuthenticationToken: on})})
			defer stop(t, a)
			must(t, a, "POST", inDefault+"/serviceaccounts", robot)
			must(t, a, "POST", configurations, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"v"},"webhooks":[{"name":"a.b.c",`+
				`"clientConfig":{"service":{"namespace":"n","name":"s","path":"/p"}},"rules":[{"operations":["CREATE"],"apiGroups":["apps"],"apiVersions":["v1"],"resources":["deployments"]}],`+
				`"sideEffects":"None","admissionReviewVersions":["v1"]}]}`)
			must(t, a, "POST", rbac+"/clusterroles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"attest"},"rules":[`+
				`{"verbs":["attest"],"apiGroups":["authentication.k8s.io"],"resources":["admissionReviewAPIGroups"],"resourceNames":["apps","batch"]}]}`)
			must(t, a, "POST", rbac+"/clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"attest"},`+
				`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"attest"},"subjects":[{"kind":"ServiceAccount","name":"robot","namespace":"default"}]}`)
			const service = "https://s.n.svc:443/p"
			for _, tt := range []struct {
				group, audience string
				code            int
				want            string
			}{
				{"apps", service, http.StatusCreated, `"expirationSeconds":600`},
				{"apps", "https://s.n.svc/p", http.StatusForbidden, `serviceaccounts/token \"robot\" is forbidden: token request denied`},
				{"batch", service, http.StatusForbidden, `serviceaccounts/token \"robot\" is forbidden: token request denied`},
				{"other", service, http.StatusForbidden, `cannot attest resource \"admissionReviewAPIGroups\" in API group \"authentication.k8s.io\" at the cluster scope`},
				{"a_b", service, http.StatusUnprocessableEntity, "must specify a valid API Group"},
			} {
				if !on && tt.code != http.StatusUnprocessableEntity {
					tt.code, tt.want = http.StatusBadRequest, "(feature gate APIServerWebhookAuthenticationToken is disabled)"
				}
				code, said := ask(t, client(t, a, admin(t, a)), "POST", a.URL()+inDefault+"/serviceaccounts/robot/token", "", request(tt.group, tt.audience))
				if code != tt.code || !strings.Contains(said, tt.want) {
					t.Errorf("%s at %s: %d %s, want %d %s", tt.group, tt.audience, code, said, tt.code, tt.want)
				}
			}
			if !on {
				return
			}
			spec, _ := strings.CutPrefix(request("apps", service), `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":`)
			token := tokenOf(t, a, strings.TrimSuffix(spec, "}"))
			review := func() string {
				return must(t, a, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":%q,"audiences":[%q]}}`, token, service))
			}
			if said := review(); !strings.Contains(said, `"attestation.authentication.kubernetes.io/admissionReviewAPIGroups":["apps"]`) {
				t.Error(said)
			}
			must(t, a, "DELETE", configurations+"/v", "")
			if said := review(); !strings.Contains(said, "service account token has been invalidated") {
				t.Error(said)
			}
		})
	}
}
