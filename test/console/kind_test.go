package console

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// The documentation of a kind has its fields with types, defaults, bounds, and rules with their messages, and the
// webhooks and policies that see its objects.
func TestKind(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
	f.Create(t, "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":"small"},"spec":{"failurePolicy":"Fail",
		"matchConstraints":{"resourceRules":[{"apiGroups":["example.com"],"apiVersions":["*"],"operations":["CREATE"],"resources":["widgets"]}]},"validations":[{"expression":"true"}]}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/kind/example.com/widgets")
	p.Sees("widgets, widget", "validating policy", "small", "CREATE")
	p.Click("[aria-label='Filter fields']")
	p.Type("[aria-label='Filter fields']", "size")
	p.Sees("spec.size", "integer", "≥ 1", "≤ 1000", "Size of the widget.")
	p.Type("[aria-label='Filter fields']", "spec")
	p.Sees("a failed widget is small")
	p.Sees("Costs of rules", "Share of the limit")
	p.Go("#/kind/apps/deployments")
	p.Sees("Deployment enables declarative updates", "DeploymentSpec")
}

// Two versions of a kind are compared field by field.
func TestVersions(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", twoVersions)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/kind/example.com/lamps?with=v1")
	const rows = `[...document.querySelectorAll("main table")].filter(t => t.innerText.startsWith("Field\tv2\tv1")).flatMap(t => [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.innerText.replaceAll(/\s+/g, " ")).join(" | ")))`
	p.Until(rows + `.length === 3`)
	if got, want := Eval[[]string](p, rows), []string{
		"spec.color | string enum [\"red\",\"blue\"] | string",
		"spec.light | object required | not there",
		"spec.watts | not there | integer minimum 1",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	p.Click("main input[type=checkbox]")
	p.Until(rows + `.some(r => r === "spec.same | string | string")`)
}

const twoVersions = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
	"names":{"plural":"lamps","singular":"lamp","kind":"Lamp"},"versions":[
	{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","required":["light"],"properties":{
		"same":{"type":"string"},"color":{"type":"string","enum":["red","blue"]},"light":{"type":"object","properties":{"lumens":{"type":"integer"}}}}}}}}},
	{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"same":{"type":"string"},"color":{"type":"string"},"watts":{"type":"integer","minimum":1}}}}}}}]}}`

const admission = "/apis/admissionregistration.k8s.io/v1/"

// policy creates a ValidatingAdmissionPolicy with one validation, and its binding.
func (f *Fixture) policy(t *testing.T, name, group, plural, labels, expression, message, action string) {
	t.Helper()
	f.Create(t, admission+"validatingadmissionpolicies", fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":%q},"spec":{"failurePolicy":"Fail",
		"matchConstraints":{"objectSelector":%s,"resourceRules":[{"apiGroups":[%q],"apiVersions":["*"],"operations":["CREATE","UPDATE"],"resources":[%q]}]},"validations":[{"expression":%q,"message":%q}]}}`, name, labels, group, plural, expression, message))
	f.Create(t, admission+"validatingadmissionpolicybindings", fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":%q},"spec":{"policyName":%q,"validationActions":[%q]}}`, name+"-everywhere", name, action))
}

// The tab for admission has the policies and webhooks that see an object, with their last answers; and the page of the kind
// those about objects that were rejected.
func TestAdmission(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("seen", "1"))
	f.policy(t, "of-others", "", "configmaps", `{"matchLabels":{"team":"b"}}`, "false", "not here", "Deny")
	f.policy(t, "of-all", "", "configmaps", `{"matchExpressions":[{"key":"team","operator":"NotIn","values":["b"]}]}`, "false", "too big", "Warn")
	f.policy(t, "size", "", "configmaps", `{}`, "!has(object.data) || object.data.a != '2'", "too big", "Deny")
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		_ = json.NewDecoder(r.Body).Decode(&review)
		review["response"] = map[string]any{"uid": review["request"].(map[string]any)["uid"], "allowed": true, "warnings": []string{"<b>old</b> field"}}
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(hook.Close)
	bundle := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}))
	f.Create(t, admission+"mutatingwebhookconfigurations", fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"hooks"},"webhooks":[
		{"name":"hook.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"url":%q,"caBundle":%q},"rules":[{"operations":["UPDATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}]}]}`, hook.URL, bundle))
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/-/configmaps/default/seen?tab=admission")
	p.Sees("mutating webhook", "hooks: hook.example.com", "validating policy", "of-all", "bound by of-all-everywhere (Warn)", "size", "Fail")
	if text := p.Shown(); strings.Contains(text, "of-others") {
		t.Errorf("a policy for other labels: %s", text)
	}
	// kube-apiserver compiles a new policy some time after it is created.
	p.Until(`(document.querySelector(".body button:not([disabled])")?.click(), document.body.innerText.includes("An update without a change is accepted.") && document.body.innerText.includes("<b>old</b> field") && document.body.innerText.includes("too big"))`)
	if !f.Own {
		p.Sees("This server does not remember their answers")
		return
	}
	p.Sees("Last answers", "UPDATE (dry run)", "Reported too big", "Allowed")
	p.Until(`document.querySelector(".body table").innerText.includes("Reported")`)
	if err := f.Do(t.Context(), http.MethodPost, configMaps, rawJSON(configMap("refused", "2")), nil); err == nil {
		t.Error("a policy did not reject")
	}
	p.Go("#/kind/-/configmaps")
	p.Sees("Admission, in order", "default/refused", "Denied too big")
}
