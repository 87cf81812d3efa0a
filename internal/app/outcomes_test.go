package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

const outcomesPage = "/admission/outcomes"

// outcomes returns the outcomes for an object as lines, the newest first.
func (h *admitting) outcomes(name string) string {
	h.t.Helper()
	code, answer := ask(h.t, h.client, "GET", h.app.URL()+outcomesPage+"?resource=configmaps&namespace=default&name="+name, "", "")
	var list struct {
		Items []struct {
			Step, Configuration, Name, Operation, Result, Message, User, Object string
			Warnings                                                            []string
			DryRun                                                              bool
		}
	}
	if err := json.Unmarshal([]byte(answer), &list); err != nil || code != http.StatusOK {
		h.t.Fatalf("%d %s", code, answer)
	}
	var lines []string
	for _, o := range list.Items {
		line := strings.TrimSpace(fmt.Sprintf("%s %s %s: %s %s %s", o.Step, o.Configuration, o.Name, o.Operation, o.Result, o.Message))
		if o.DryRun {
			line += " (dry run)"
		}
		if len(o.Warnings) > 0 {
			line += fmt.Sprint(o.Warnings)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// The outcomes of an object are those of each webhook and policy that it matched, also of rejected writes and dry runs.
func TestOutcomes(t *testing.T) {
	h := startAdmitting(t, Options{})
	expect := func(name string, want ...string) {
		t.Helper()
		if got := h.outcomes(name); got != strings.Join(want, "\n") {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, strings.Join(want, "\n"))
		}
	}
	create := func(name string, code int) { t.Helper(); h.must("POST", inConfigMaps, configMap(name), code) }
	h.must("POST", mutatingWebhooks, h.configuration("Mutating", h.hook.URL, h.ca(), ""), 201)
	create("a", 201)
	h.says(patching(`[{"op":"add","path":"/data/x","value":"y"}]`))
	h.must("POST", inConfigMaps+"?dryRun=All", configMap("b"), 201)
	h.says(saying(map[string]any{"allowed": false, "warnings": []string{"careful"}, "status": map[string]any{"message": "not today"}}))
	create("b", 400)
	const hook = "mutating webhook hook hook.example.com: "
	expect("a", hook+"CREATE Allowed")
	expect("b", hook+`CREATE Denied admission webhook "hook.example.com" denied the request: not today[careful]`, hook+"CREATE Changed (dry run)")
	h.must("DELETE", mutatingWebhooks+"/hook", "", 200)

	h.says(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h.must("POST", validatingWebhooks, h.configuration("Validating", h.hook.URL, h.ca(), `,"failurePolicy":"Ignore"`), 201)
	create("c", 201)
	const teapot = `failed calling webhook "hook.example.com": failed to call webhook: the server responded with the status code 418`
	if got := h.outcomes("c"); !strings.HasPrefix(got, "validating webhook hook hook.example.com: CREATE Ignored "+teapot) {
		t.Error(got)
	}
	h.must("DELETE", validatingWebhooks+"/hook", "", 200)
}

// Policies have an outcome for each binding: with all of its actions, and with failures.
func TestOutcomesOfPolicies(t *testing.T) {
	h := startAdmitting(t, Options{})
	const policies = "/apis/admissionregistration.k8s.io/v1/"
	constraints := `"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}`
	validating := func(name, failure, actions string, expressions ...string) {
		var validations []string
		for _, e := range expressions {
			validations = append(validations, fmt.Sprintf(`{"expression":%q,"message":"no good"}`, e))
		}
		h.must("POST", policies+"validatingadmissionpolicies", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{%s,"failurePolicy":%q,"validations":[%s]}}`, name, constraints, failure, strings.Join(validations, ",")), 201)
		h.must("POST", policies+"validatingadmissionpolicybindings", fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"policyName":%q,"validationActions":%s}}`, name, name, actions), 201)
	}
	const broken = "object.data.missing == 'x' || object.metadata.name == ''"
	validating("p1", "Fail", `["Deny"]`, "object.metadata.name != 'denied'")
	validating("p2", "Fail", `["Warn"]`, "object.metadata.name != 'warned'")
	validating("p3", "Ignore", `["Deny"]`, broken)
	validating("p4", "Ignore", `["Deny"]`, broken, "object.metadata.name != 'denied'")
	validating("p5", "Fail", `["Warn"]`, broken)
	h.must("POST", policies+"mutatingadmissionpolicies", `{"metadata":{"name":"m"},"spec":{`+constraints+`,"reinvocationPolicy":"Never",
		"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{metadata: Object.metadata{labels: {'by': 'policy'}}}"}}]}}`, 201)
	h.must("POST", policies+"mutatingadmissionpolicybindings", `{"metadata":{"name":"m"},"spec":{"policyName":"m"}}`, 201)
	h.must("POST", inConfigMaps, configMap("denied"), 422)
	h.must("POST", inConfigMaps, configMap("warned"), 201)
	const problem = "expression '" + broken + "' resulted in error: no such key: missing"
	const p3, p5 = "validating policy p3 p3: CREATE Ignored " + problem, "validating policy p5 p5: CREATE Reported " + problem
	for name, want := range map[string][]string{
		"denied": {p5, "validating policy p4 p4: CREATE Denied no good", p3, "validating policy p2 p2: CREATE Allowed", "validating policy p1 p1: CREATE Denied no good", "mutating policy m m: CREATE Changed"},
		"warned": {p5, "validating policy p4 p4: CREATE Ignored " + problem, p3, "validating policy p2 p2: CREATE Reported no good", "validating policy p1 p1: CREATE Allowed", "mutating policy m m: CREATE Changed"},
	} {
		got := strings.Split(h.outcomes(name), "\n")
		if len(got) != len(want) {
			t.Errorf("%s: %q", name, got)
			continue
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%s: %s, want %s", name, got[i], want[i])
			}
		}
	}
}

// Outcomes are for users that may read the objects.
func TestOutcomesOfOthers(t *testing.T) {
	tokens := write(t, filepath.Join(t.TempDir(), "tokens"), []byte("jane-token,jane,1\n"))
	h := startAdmitting(t, Options{TokenFile: tokens})
	jane := client(t, h.app, nil)
	asks := func(query string, code int, parts ...string) {
		t.Helper()
		answers(t, jane, "GET", h.app.URL()+outcomesPage+query, "jane-token", "", code, parts...)
	}
	const a = "?resource=secrets&namespace=default&name=a"
	asks(a, 403, `cannot get path \"/admission/outcomes\"`)
	bind := func(name, where, kind, rules string) {
		must(t, h.app, "POST", "/apis/rbac.authorization.k8s.io/v1"+where+"/"+strings.ToLower(kind)+"s", `{"metadata":{"name":"`+name+`"},"rules":[`+rules+`]}`)
		must(t, h.app, "POST", "/apis/rbac.authorization.k8s.io/v1"+where+"/"+strings.ToLower(kind)+"bindings",
			`{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"`+kind+`","name":"`+name+`"},"subjects":[{"kind":"User","name":"jane"}]}`)
	}
	bind("page", "", "ClusterRole", `{"nonResourceURLs":["/admission/outcomes"],"verbs":["get"]}`)
	asks(a, 403, `secrets \"a\" is forbidden: User \"jane\" cannot get resource \"secrets\"`)
	bind("one", "/namespaces/default", "Role", `{"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"],"verbs":["get"]}`)
	asks(a, 200, `"kind":"OutcomeList"`, `"items":[]`)
	asks("?resource=secrets&namespace=default", 403, "cannot list resource")
	for query, want := range map[string]string{
		"":                                    "resource: Required value",
		"?resource=secrets&group=x":           "resource: Invalid value",
		"?resource=secrets&name=a":            "namespace: Required value",
		"?resource=nodes&name=a&namespace=b":  "namespace: Invalid value",
		"?resource=secrets&limit=0":           "limit: Invalid value",
		"?resource=secrets&limit=many&name=a": "limit: Invalid value",
	} {
		asks(query, 400, want)
	}
	answers(t, h.client, "DELETE", h.app.URL()+outcomesPage+a, "", "", 405)
}
