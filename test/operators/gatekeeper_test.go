package operators

import (
	"fmt"
	"strings"
	"testing"
)

// Gatekeeper creates a kind from a template, rejects violations of a constraint of that kind by its
// webhook, and reports existing ones.
func TestGatekeeper(t *testing.T) {
	needs(t)
	c, port := serving(t), free(t)
	documents := published(t, "gatekeeper")
	if err := Outside(documents, "gatekeeper-webhook-service", port); err != nil {
		t.Fatal(err)
	}
	install(t, c, "gatekeeper", "", documents)
	const pkg = "github.com/open-policy-agent/gatekeeper/v3"
	webhook := start(t, c, pkg, documents, Operator{Deployment: "gatekeeper-system/gatekeeper-controller-manager",
		Mounts: map[string]string{"--cert-dir": "gatekeeper-webhook-server-cert"},
		Flags:  []string{fmt.Sprintf("--port=%d", port), "--host=127.0.0.1", "--health-addr=" + local(t), "--prometheus-port=" + fmt.Sprint(free(t))}})
	eventually(t, "Gatekeeper has made a certificate", func() bool {
		// A node updates a mounted Secret in the same way.
		if err := c.mount(t.Context(), "gatekeeper-system", "secret", "gatekeeper-webhook-server-cert"); err != nil {
			t.Fatal(err)
		}
		return get(t, c, "secret", "gatekeeper-webhook-server-cert", "-n", "gatekeeper-system", "-o", `jsonpath={.data.tls\.crt}`) != ""
	})
	audit := start(t, c, pkg, documents, Operator{Deployment: "gatekeeper-system/gatekeeper-audit",
		Mounts: map[string]string{"--cert-dir": "gatekeeper-webhook-server-cert"},
		Flags:  []string{"--audit-interval=1", "--api-cache-dir=" + t.TempDir(), "--health-addr=" + local(t), "--prometheus-port=" + fmt.Sprint(free(t))}})
	apply(t, c, `
apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: k8sneedslabel}
spec:
  crd: {spec: {names: {kind: K8sNeedsLabel}, validation: {openAPIV3Schema: {type: object, properties: {label: {type: string}}}}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package k8sneedslabel
      violation[{"msg": msg}] {
        not input.review.object.metadata.labels[input.parameters.label]
        msg := sprintf("the label %v is missing", [input.parameters.label])
      }
`)
	eventually(t, "the template has made a kind", func() bool {
		return get(t, c, "crd", "k8sneedslabel.constraints.gatekeeper.sh", "-o", `jsonpath={.status.conditions[?(@.type=="Established")].status}`) == "True"
	})
	apply(t, c, `
apiVersion: constraints.gatekeeper.sh/v1beta1
kind: K8sNeedsLabel
metadata: {name: owner}
spec:
  match: {kinds: [{apiGroups: [""], kinds: [Namespace]}]}
  parameters: {label: owner}
`)
	var said string
	eventually(t, "a Namespace without the label is refused", func() bool {
		_, said, _ = c.Run(t.Context(), "create", "namespace", "unlabeled", "--dry-run=server")
		return strings.Contains(said, "[owner] the label owner is missing")
	})
	if !strings.Contains(said, `admission webhook "validation.gatekeeper.sh" denied the request`) {
		t.Errorf("it is refused with %q", said)
	}
	apply(t, c, `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "labeled", "labels": {"owner": "x"}}}`)
	eventually(t, "the Namespaces from before are reported", func() bool {
		return strings.Contains(get(t, c, "k8sneedslabel", "owner", "-o", "jsonpath={.status.violations[*].name}"), "kube-system")
	})
	// The webhook may watch the new kind before the audit has created it.
	blameless(t, webhook, `no matches for kind \"K8sNeedsLabel\"`)
	blameless(t, audit, `no matches for kind \"K8sNeedsLabel\"`)
}
