package console

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

const (
	configMaps = "/api/v1/namespaces/default/configmaps"
	secrets    = "/api/v1/namespaces/default/secrets"
	pods       = "/api/v1/namespaces/default/pods"
)

func configMap(name, value string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"labels":{"app":%q}},"data":{"a":%q}}`, name, name[:1], value)
}

// A list shows the rows of the server, changes them as objects change, and is sorted and filtered. Its address has all of
// it.
func TestList(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("b2", "1"), configMap("a1", "1"), configMap("c3", "1"))
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Click("ConfigMap")
	p.Sees("a1", "b2", "c3", "● live")
	names := func(want ...string) {
		t.Helper()
		p.Until(fmt.Sprintf(`[...document.querySelectorAll(".space .row:not([hidden]) a")].filter(a => a.textContent.length === 2).map(a => [a.closest(".row").ariaRowIndex, a.textContent]).sort((a, b) => a[0] - b[0]).map(a => a[1]).join() === %q`, strings.Join(want, ",")))
	}
	names("a1", "b2", "c3")
	f.Create(t, configMaps, configMap("b9", "1"))
	names("a1", "b2", "b9", "c3")
	if err := f.Do(t.Context(), http.MethodDelete, configMaps+"/b2", nil, nil); err != nil {
		t.Fatal(err)
	}
	names("a1", "b9", "c3")
	p.Click("Name")
	p.Click("Name ↑")
	names("c3", "b9", "a1")
	p.Type("[data-filter]", "b9")
	names("b9")
	p.Sees("1 of ")
	p.Type("[data-filter]", "")
	p.Type("[aria-label='Label selector']", "app in (a,c)")
	names("c3", "a1")
	address := Eval[string](p, `location.href`)
	if !strings.Contains(address, "label=app") || !strings.Contains(address, "sort=-Name") {
		t.Errorf("the address has no label selector or order: %s", address)
	}
	Eval[any](p, `(location.reload(), null)`)
	p.Sees("● live")
	names("c3", "a1")
	p.Type("[aria-label='Label selector']", "app in (")
	p.Sees("The server rejects the list.", "unable to parse requirement")
}

// Keys open, select and delete rows. A deletion shows the dependents that the garbage collector deletes, too.
func TestKeysAndDeletion(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("owner", "1"))
	child := func(name, parent, uid string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"ownerReferences":[{"apiVersion":"v1","kind":%q,"name":"owner","uid":%q}]}}`, name, parent, uid)
	}
	f.Create(t, secrets, child("below", "ConfigMap", f.UID(t, configMaps+"/owner")))
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/list/-/configmaps?namespace=default&text=owner")
	p.Sees("● live", "1 of 2")
	p.Key("x")
	p.Sees("1 selected")
	p.Key("d")
	p.Sees("1 dependents would be deleted with it", "Secret below")
	p.Click("Delete 1 ConfigMap")
	p.Sees("1 ConfigMap deleted", "No object passes the filter.")
	p.Go("#/list/-/secrets?namespace=default")
	p.Sees("There is no Secret in default.")
}

// The state of a pod names the objects that it refers to and that do not exist, and its conditions.
func TestState(t *testing.T) {
	f := Start(t)
	f.Create(t, secrets, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"there"},"stringData":{"password":"hunter2"}}`)
	f.Create(t, "/apis/apps/v1/namespaces/default/deployments", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"nginx"}]}}}}`)
	f.Create(t, pods, fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":%q,"controller":true}]},
		"spec":{"serviceAccountName":"default","automountServiceAccountToken":false,"containers":[{"name":"a","image":"nginx","envFrom":[{"secretRef":{"name":"there"}},{"configMapRef":{"name":"absent"}},{"configMapRef":{"name":"maybe","optional":true}}]}]}}`, f.UID(t, "/apis/apps/v1/namespaces/default/deployments/web")))
	f.Patch(t, pods+"/p/status", `{"status":{"conditions":[{"type":"Ready","status":"False","reason":"ContainersNotReady","message":"containers with unready status: [a]","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)
	f.Create(t, "/api/v1/namespaces/default/events", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"type":"Warning","reason":"FailedMount","message":"configmap \"absent\" not found","count":3,
		"involvedObject":{"apiVersion":"v1","kind":"Pod","name":"p","namespace":"default","uid":"`+f.UID(t, pods+"/p")+`"},"lastTimestamp":"2026-01-01T00:00:00Z"}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/-/pods/default/p")
	p.Sees("Not ready", "Ready is False: ContainersNotReady", "ConfigMap absent does not exist", "ConfigMap maybe does not exist (optional)", "Secret there", "Deployment web owner", "FailedMount ×3")
	// From the owner down: the pod is the reason.
	p.Go("#/object/apps/deployments/default/web")
	p.Sees("Not ready", "Pod p", "Ready is False: ContainersNotReady", "ConfigMap absent does not exist (envFrom.configMapRef)")
}

// The text of an object has the owners of its fields. The editor shows the errors of the server at their lines as one
// types, saves, and shows the changes of others in a conflict.
func TestDocument(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apps/v1/namespaces/default/deployments?fieldManager=alice", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"nginx"}]}}}}`)
	f.Patch(t, "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=bob", `{"spec":{"replicas":2}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/apps/deployments/default/web?tab=yaml")
	p.Until(`[...document.querySelectorAll(".lines tr")].some(r => r.innerText.includes("replicas: 2") && r.querySelector(".owner").title.startsWith("bob (Update"))`)
	p.Until(`[...document.querySelectorAll(".lines tr")].some(r => r.innerText.includes("image: nginx") && r.querySelector(".owner").title.startsWith("alice"))`)
	p.Click("Edit")
	p.Until(`document.querySelector("textarea")`)
	edit := func(from, to string) {
		t.Helper()
		text := Eval[string](p, `document.querySelector("textarea").value`)
		if !strings.Contains(text, from) {
			t.Fatalf("the text has no %q:\n%s", from, text)
		}
		p.Type("textarea", strings.Replace(text, from, to, 1))
	}
	wrong := func(line, message string) {
		t.Helper()
		p.Until(fmt.Sprintf(`document.querySelector(".sheet .wrong")?.innerText.trim() === %q`, line))
		p.Sees(message)
		p.Until(`[...document.querySelectorAll("button")].find(b => b.innerText === "Save").disabled`)
	}
	edit("replicas: 2", "replicas: -2")
	wrong("replicas: -2", "spec.replicas: Invalid value: -2: must be greater than or equal to 0")
	edit("replicas: -2", "replicas: 2")
	edit("image: nginx", "imagee: nginx")
	wrong("imagee: nginx", `unknown field "spec.template.spec.containers[0].imagee"`)
	edit("imagee: nginx", "image: nginx: 1")
	wrong("image: nginx: 1", "mapping values are not allowed in this context")
	edit("image: nginx: 1", "image: nginx:2")
	p.Until(`!document.querySelector(".sheet .wrong") && ![...document.querySelectorAll("button")].find(b => b.innerText === "Save").disabled`)
	// Another client is faster: with one field of ours, and one of its own.
	f.Patch(t, "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=carol", `{"spec":{"replicas":7,"template":{"spec":{"containers":[{"name":"a","image":"nginx:9"}]}}}}`)
	p.Sees("The object has changed since.")
	p.Click("Save")
	p.Sees("Theirs", "Yours", "spec.replicas", "nginx:9", "nginx:2")
	if clash := Eval[string](p, `[...document.querySelectorAll("tr.clash")].map(r => r.innerText).join("|")`); !strings.Contains(clash, "image") || strings.Contains(clash, "replicas") {
		t.Errorf("fields that both changed: %q", clash)
	}
	p.Click("Take theirs, and yours where both changed")
	p.Sees("Saved over the newest state", "image: nginx:2", "replicas: 7")
	// The history has all of it, with the users.
	p.Tab("Changes")
	p.Sees("patched by kubernetes-admin (anykind-console)", "spec.template.spec.containers[name=a].image", "nginx:9")
}

// Values of Secrets are hidden until the user asks for them, also in changes.
func TestSecrets(t *testing.T) {
	f := Start(t)
	const value = "aHVudGVyMg=="
	f.Create(t, secrets, `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"data\":{\"password\":\"`+value+`\"}}"}},"data":{"password":"`+value+`"}}`)
	f.Patch(t, secrets+"/s", `{"data":{"password":"c2Vjb25k"}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	hidden := func(seen string) {
		t.Helper()
		p.Sees(seen)
		if shown := Eval[string](p, `document.documentElement.outerHTML`); strings.Contains(shown, value) || strings.Contains(shown, "c2Vjb25k") {
			t.Errorf("the page shows a value")
		}
	}
	p.Go("#/object/-/secrets/default/s")
	hidden("No problem is known")
	p.Tab("YAML")
	hidden("••••••••")
	p.Tab("Changes")
	hidden("data.password")
	p.Tab("YAML")
	p.Click("Show the values")
	p.Sees("c2Vjb25k")
}

// Every view can be looked at as it was.
func TestPast(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("kept", "before"), configMap("gone", "x"))
	var then struct {
		Items []struct{ Time string }
	}
	if err := f.Do(t.Context(), http.MethodGet, configMaps+"/gone?history=true", nil, &then); err != nil || len(then.Items) != 1 {
		t.Fatal(err, then)
	}
	f.Patch(t, configMaps+"/kept", `{"data":{"a":"after"}}`)
	if err := f.Do(t.Context(), http.MethodDelete, configMaps+"/gone", nil, nil); err != nil {
		t.Fatal(err)
	}
	at := "at=" + then.Items[0].Time
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/list/-/configmaps?namespace=default&" + at)
	p.Sees("gone", "as it was")
	p.Go("#/object/-/configmaps/default/kept?tab=yaml&" + at)
	p.Sees("a: before", "as it was at")
	p.Go("#/object/-/configmaps/default/kept?tab=yaml")
	p.Sees("a: after")
	p.Go("#/object/-/configmaps/default/gone")
	p.Sees("Not found", `configmaps "gone" not found`)
	p.Go("#/list/-/configmaps?at=2001-01-01T00:00:00Z")
	p.Sees("The server rejects the list.", "the oldest kept state is of")
}

// The page of changes has those of all kinds with users, managers and fields. It follows the server, and goes back.
func TestChanges(t *testing.T) {
	f := Start(t)
	f.Create(t, "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}}`)
	f.Create(t, configMaps, configMap("oldest", "before"))
	for i := range 130 {
		f.Create(t, configMaps, configMap(fmt.Sprintf("many-%03d", i), "x"))
	}
	f.Create(t, "/api/v1/namespaces/other/configmaps", configMap("elsewhere", "1"))
	f.Create(t, configMaps, configMap("one", "before"), configMap("gone", "1"))
	f.Patch(t, configMaps+"/one?fieldManager=hand", `{"data":{"a":"after"}}`)
	var past struct {
		Items []struct{ Time string }
	}
	if err := f.Do(t.Context(), http.MethodGet, configMaps+"/one?history=true", nil, &past); err != nil || len(past.Items) != 2 {
		t.Fatal(err, past)
	}
	if err := f.Do(t.Context(), http.MethodDelete, configMaps+"/gone", nil, nil); err != nil {
		t.Fatal(err)
	}
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/changes")
	p.Sees("● live", "ConfigMap gone in default deleted by kubernetes-admin", "ConfigMap one in default patched by kubernetes-admin (hand)", "data.a before → after", "ConfigMap elsewhere in other created")
	first := func(want string) {
		t.Helper()
		p.Until(fmt.Sprintf(`[...document.querySelectorAll(".entry")].find(e => !e.hidden).innerText.replace(/\s+/g, " ").startsWith(%q)`, want))
	}
	first("ConfigMap gone in default deleted")
	f.Patch(t, configMaps+"/one", `{"data":{"a":"again"}}`)
	first("ConfigMap one in default patched by kubernetes-admin")
	p.Sees("data.a after → again")

	entries := func(n int) {
		t.Helper()
		p.Until(fmt.Sprintf(`[...document.querySelectorAll(".entry")].filter(e => !e.hidden).length === %d`, n))
	}
	p.Type("[data-filter]", "hand")
	entries(1)
	p.Sees("changes contain “hand”")
	f.Create(t, configMaps, configMap("by-hand", "1"), configMap("not", "1"))
	entries(2)
	// An older change is found, however many others there are.
	p.Type("[data-filter]", "oldest")
	entries(0)
	p.Click("Earlier changes")
	entries(1)
	p.Type("[data-filter]", "")
	p.Until(`document.querySelectorAll(".entry").length > 130`)
	p.Until(`!document.querySelector(".entry[aria-label^='Lease ']")`)
	f.Create(t, "/apis/coordination.k8s.io/v1/namespaces/default/leases", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"l"}}`)
	p.Click("input[type=checkbox]")
	first("Lease l in default created by kubernetes-admin")

	p.Go("#/changes?namespace=other")
	p.Sees("elsewhere in other")
	p.Until(`[...document.querySelectorAll(".entry")].every(e => e.textContent.includes(" in other "))`)
	f.Create(t, configMaps, configMap("unseen", "1"))
	f.Create(t, "/api/v1/namespaces/other/configmaps", configMap("seen", "1"))
	first("ConfigMap seen in other")
	p.Until(`!document.querySelector(".feed").innerText.includes("unseen")`)

	p.Go("#/changes?at=" + past.Items[1].Time)
	p.Sees("until 2", "data.a before → after")
	first("ConfigMap one in default patched by kubernetes-admin (hand)")
	p.Go("#/changes?at=" + past.Items[0].Time)
	p.Until(`!document.querySelector(".feed").innerText.includes("(hand)")`)
	p.Sees("ConfigMap one in default created")
	p.Click("Earlier changes")
	p.Sees("ConfigMap oldest in default created")
	// Every change leads to its time, and a deleted object to its last state.
	p.Go("#/changes")
	p.Click(".entry time")
	p.Until(`location.hash.includes("at=")`)
	p.Go("#/changes?text=gone")
	p.Sees("ConfigMap gone in default deleted")
	p.Click("gone")
	p.Sees("as it was at", "ConfigMap gone")
	p.Go("#/changes?at=2001-01-01T00:00:00Z")
	p.Sees("Too old", "the oldest kept state is of")
}

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
	p.Go("#/kind/apps/deployments")
	p.Sees("Deployment enables declarative updates", "DeploymentSpec")
}

// The page of rights has those of the user, and the users who have a right.
func TestRights(t *testing.T) {
	f := Start(t)
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	f.Create(t, rbac+"/namespaces/default/roles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader"},"rules":[{"apiGroups":[""],"resources":["secrets"],"verbs":["get"],"resourceNames":["one"]}]}`)
	f.Create(t, rbac+"/namespaces/default/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"readers"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"User","name":"jane","apiGroup":"rbac.authorization.k8s.io"}]}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/access?verb=get&resource=secrets")
	p.Sees("jane", "Role reader", "one", "Your rights in default", "ClusterRole cluster-admin")
	p.Type("[name=verb]", "delete")
	p.Click("Show")
	p.Until(`!document.body.innerText.includes("jane") && document.body.innerText.includes("cluster-admin")`)
}

// The search finds kinds by any of their names, and opens the best result with Enter.
func TestSearch(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("needle-1", "hay"), configMap("x", "needle in a value"))
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Key("k", "ctrl")
	p.Type(".query", "deploy")
	p.Until(`document.querySelector("[role=option]")?.innerText.includes("Deployment")`)
	p.Key("Enter")
	p.Until(`location.hash.startsWith("#/list/apps/deployments") && !document.querySelector("dialog")`)
	p.Key("k", "ctrl")
	p.Type(".query", "needle")
	p.Until(`document.querySelector("[role=option]")?.innerText.includes("needle-1")`)
	p.Key("Enter")
	p.Sees("ConfigMap needle-1")
}

const widgets = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
	"names":{"plural":"widgets","singular":"widget","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},
	{"name":"Phase","type":"string","jsonPath":".spec.phase"},{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}],"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
	"properties":{"size":{"type":"integer","minimum":1,"maximum":1000,"description":"Size of the widget."},"phase":{"type":"string","enum":["Running","Pending","Failed"],"default":"Pending"}},
	"x-kubernetes-validations":[{"rule":"!has(self.size) || self.size < 900 || self.phase != 'Failed'","message":"a failed widget is small"}]}}}}}]}}`

// A row of a list has the cells that the server computes.
func TestColumns(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
	f.Create(t, "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":10,"phase":"Failed"}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"v"},"spec":{"size":9}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/list/example.com/widgets?sort=Size")
	p.Sees("● live")
	p.Until(`document.querySelectorAll(".space .row:not([hidden])").length === 2`)
	rows := p.Rows()
	for i := range rows {
		rows[i] = rows[i][:strings.LastIndex(rows[i], " ")] // the age
	}
	if want := []string{"default v 9 Pending", "default w 10 Failed"}; !slices.Equal(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	f.Patch(t, "/apis/example.com/v1/namespaces/default/widgets/v", `{"spec":{"size":11}}`)
	p.Until(`[...document.querySelectorAll(".space .row:not([hidden])")].find(r => r.ariaRowIndex === "3")?.innerText.includes("11")`)
}
