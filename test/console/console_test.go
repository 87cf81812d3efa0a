package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"sigs.k8s.io/yaml"
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
	p.Type("[aria-label='Label selector']", "")
	p.Type("[aria-label^='Filter in CEL']", "object.data.a == '2' || object.metadata.name.startsWith('b')")
	names("b9")
	f.Patch(t, configMaps+"/a1", `{"data":{"a":"2"}}`)
	names("b9", "a1")
	f.Patch(t, configMaps+"/a1", `{"data":{"a":"3"}}`)
	names("b9")
	p.Type("[aria-label^='Filter in CEL']", "objct.data.a == '1'")
	p.Sees("undeclared reference to objct")
	p.Type("[aria-label^='Filter in CEL']", "object.data.a ==")
	p.Sees("A filter cannot have this expression.", "the expression ends too early")
}

// Keys open, select and delete rows. A deletion shows the dependents that the garbage collector deletes, too.
func TestKeysAndDeletion(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("owner", "1"), configMap("other", "1"))
	child := func(name, parent, uid string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q,"ownerReferences":[{"apiVersion":"v1","kind":%q,"name":"owner","uid":%q}]}}`, name, parent, uid)
	}
	f.Create(t, secrets, child("below", "ConfigMap", f.UID(t, configMaps+"/owner")))
	two := fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q},{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":%q}]`, f.UID(t, configMaps+"/owner"), f.UID(t, configMaps+"/other"))
	f.Create(t, configMaps, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"shared",`+two+`}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/list/-/configmaps?namespace=default&text=owner")
	p.Sees("● live", "owner")
	p.Key("x")
	p.Sees("1 selected")
	p.Key("d")
	p.Sees("1 dependent would be deleted with it", "Secret below", "1 dependent with other owners stays: shared")
	p.Type("[aria-label=Dependents]", "Orphan")
	p.Sees("1 dependent with it as an owner stays:")
	p.Type("[aria-label=Dependents]", "Background")
	p.Click("Delete 1 ConfigMap")
	p.Sees("1 ConfigMap deleted", "No object passes the filter.")
	if f.Own { // kube-apiserver has no garbage collector
		p.Go("#/list/-/secrets?namespace=default")
		p.Sees("There is no Secret in default.")
	}
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
	// The same as a drawing.
	p.Go("#/object/-/pods/default/p?tab=graph")
	p.Until(`document.querySelectorAll(".graph .box").length === 6 && document.querySelectorAll(".graph path.owns").length === 1 && document.querySelectorAll(".graph path.refers").length === 4`)
	p.Until(`[...document.querySelectorAll(".graph .box.bad")].some(b => b.innerText.includes("absent (does not exist)"))`)
	p.Click(".graph a[href*=deployments]")
	p.Sees("Deployment web")
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
	if f.Own { // the history knows the user and the time of the change
		p.Until(`[...document.querySelectorAll(".lines tr")].some(r => r.innerText.includes("replicas: 2") && r.querySelector(".owner").title.includes("changed by kubernetes-admin"))`)
	}
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
	f.Patch(t, "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=carol", `{"spec":{"replicas":7,"template":{"spec":{"containers":[{"name":"a","image":"nginx:9"},{"name":"b","image":"theirs"}]}}}}`)
	p.Sees("The object has changed since.")
	p.Click("Save")
	p.Sees("Theirs", "Yours", "spec.replicas", "nginx:9", "nginx:2")
	if clash := Eval[string](p, `[...document.querySelectorAll("tr.clash")].map(r => r.innerText).join("|")`); !strings.Contains(clash, "image") || strings.Contains(clash, "replicas") {
		t.Errorf("fields that both changed: %q", clash)
	}
	p.Click("Take theirs, and yours where both changed")
	p.Sees("Saved", "image: nginx:2", "replicas: 7", "name: b", "image: theirs")
	if !f.Own {
		return
	}
	// The history has all of it, with the users.
	p.Tab("Changes")
	p.Sees("updated by kubernetes-admin (anykind-console)", "spec.template.spec.containers[name=a].image", "nginx:9")
}

// A form has the fields that are set, by the schema. Errors stand at their fields; elements and fields are added and
// removed.
func TestForm(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apps/v1/namespaces/default/deployments", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"a","image":"nginx"}]}}}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/apps/deployments/default/web?tab=form")
	p.Type("[id='field-spec.replicas']", "-1")
	p.Until(`document.querySelector("[data-path='spec.replicas']").innerText.includes("must be greater than or equal to 0")`)
	p.Type("[id='field-spec.replicas']", "4")
	p.Until(`document.querySelector("[data-path='spec.replicas']").textContent === ""`)
	p.Type("[aria-label='Add a field of spec']", "paused")
	p.Until(`document.querySelector("[id='field-spec.paused']")`)
	Eval[any](p, `(document.querySelector("[id='field-spec.paused']").click(), null)`)
	Eval[any](p, `([...document.querySelectorAll("details")].forEach(d => d.open = true), null)`)
	p.Until(`![...document.querySelectorAll("button")].find(b => b.innerText === "Save").disabled`)
	p.Click("Save")
	p.Sees("Saved")
	var d struct {
		Spec struct {
			Replicas int
			Paused   bool
		}
	}
	if err := f.Do(t.Context(), http.MethodGet, "/apis/apps/v1/namespaces/default/deployments/web", nil, &d); err != nil || d.Spec.Replicas != 4 || !d.Spec.Paused {
		t.Errorf("%+v %v", d, err)
	}
}

// A definition is reviewed while it is written: errors at their lines, costs of rules, changes that break clients, and
// stored objects that it would reject. Then it is applied.
func TestDefinition(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", widgets)
	f.Create(t, "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"small"},"spec":{"size":2}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"large"},"spec":{"size":700}}`)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/apiextensions.k8s.io/customresourcedefinitions/-/widgets.example.com")
	p.Click("Review a change")
	p.Sees("The schemas are as they are served.", "Costs of rules", "self.phase != 'Failed'")
	text := Eval[string](p, `document.querySelector("textarea").value`)
	p.Type("textarea", strings.Replace(text, "maximum: 1000", "maximum: many", 1))
	p.Sees("A server would reject it")
	p.Until(`document.querySelector(".sheet .wrong")`)
	p.Type("textarea", strings.Replace(text, "maximum: 1000", "maximum: 100", 1))
	p.Sees("breaking", "maximum")
	p.Click("Try against all stored objects")
	p.Sees("2 stored objects", "spec.size", "large")
	p.Type("textarea", strings.Replace(text, "maximum: 1000", "maximum: 2000", 1))
	p.Until(`!document.body.innerText.includes("breaking") && document.querySelector(".review").innerText.includes("2000")`)
	p.Click("Apply")
	p.Sees("CustomResourceDefinition widgets.example.com applied")
	f.Create(t, "/apis/example.com/v1/namespaces/default/widgets", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"huge"},"spec":{"size":1900,"phase":"Running"}}`)
}

// Custom resources are edited, too: with the status that their kind has no path for, and with integers beyond 2^53.
func TestCustomResource(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", strings.Replace(widgets, `"type":"object","properties":{"spec"`, `"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec"`, 1))
	const path = "/apis/example.com/v1/namespaces/default/widgets"
	f.Create(t, path, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":5},"id":9007199254740993,"status":{"seen":true}}`)
	check := func(size int) {
		t.Helper()
		data, err := f.Read(t.Context(), path+"/w")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fmt.Sprintf(`"size":%d`, size), `"id":9007199254740993`, `"seen":true`} {
			if !strings.Contains(string(data), want) {
				t.Errorf("the object has no %s:\n%s", want, data)
			}
		}
	}
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/object/example.com/widgets/default/w?tab=yaml")
	p.Sees("id: 9007199254740993")
	p.Click("Edit")
	p.Until(`document.querySelector("textarea")`)
	text := Eval[string](p, `document.querySelector("textarea").value`)
	p.Type("textarea", strings.Replace(text, "size: 5", "size: 6", 1))
	p.Until(`!document.querySelector(".errors li") && ![...document.querySelectorAll("button")].find(b => b.innerText === "Save").disabled`)
	p.Click("Save")
	p.Sees("Saved", "size: 6")
	check(6)
	p.Tab("Form")
	p.Type("[id='field-spec.size']", "7")
	p.Until(`![...document.querySelectorAll("button")].find(b => b.innerText === "Save").disabled`)
	p.Click("Save")
	p.Until(`!document.querySelector(".toast.bad") && document.querySelector("[id='field-spec.size']").value === "7"`)
	p.Tab("YAML")
	p.Sees("size: 7")
	check(7)
}

// The changes of two sides become one object. Elements of lists are matched by their keys, and an order that I changed
// stays.
func TestMerge(t *testing.T) {
	f := Start(t)
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	for _, c := range []struct{ base, mine, theirs, want string }{
		{`{"a":1,"b":2}`, `{"a":9,"b":2}`, `{"a":1,"b":3}`, `{"a":9,"b":3}`},
		{`{"a":1}`, `{"a":2}`, `{"a":3}`, `{"a":2}`},
		{`{"a":1,"b":2}`, `{"b":2}`, `{"a":1,"b":3}`, `{"b":3}`},
		{`{"a":1}`, `{"a":1}`, `{}`, `{}`},
		{`{"a":1}`, `{"a":null}`, `{"a":1,"b":1}`, `{"a":null,"b":1}`},
		{`{"l":[{"name":"a","v":1}]}`, `{"l":[{"name":"a","v":2}]}`, `{"l":[{"name":"a","v":1},{"name":"b"}]}`, `{"l":[{"name":"a","v":2},{"name":"b"}]}`},
		{`{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"b"}]}`, `{"l":[{"name":"a"},{"name":"b"},{"name":"c"}]}`, `{"l":[{"name":"b"},{"name":"c"}]}`},
		{`{"l":[{"name":"b"}]}`, `{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"b","v":1}]}`, `{"l":[{"name":"a"},{"name":"b","v":1}]}`},
		{`{"l":[{"name":"a"},{"name":"b"}]}`, `{"l":[{"name":"b"},{"name":"a"}]}`, `{"l":[{"name":"a","v":1},{"name":"c"},{"name":"b"}]}`, `{"l":[{"name":"b"},{"name":"a","v":1},{"name":"c"}]}`},
		{`{"constructor":"x"}`, `{"constructor":"x","toString":"y"}`, `{}`, `{"toString":"y"}`},
		{`{"l":[1,2]}`, `{"l":[1,2,3]}`, `{"l":[1]}`, `{"l":[1,2,3]}`},
		{`{}`, `{"m":{"x":1}}`, `{"m":{"y":2}}`, `{"m":{"x":1,"y":2}}`},
	} {
		got := Eval[string](p, fmt.Sprintf(`import("/console/diff.js").then(d => { const got = d.merge(%s, %s, %s); return d.same(got, %s) ? "" : JSON.stringify(got) })`, c.base, c.mine, c.theirs, c.want))
		if got != "" {
			t.Errorf("%s: mine %s, theirs %s: %s, want %s", c.base, c.mine, c.theirs, got, c.want)
		}
	}
}

// A new object begins with the required fields of its schema, in the chosen namespace.
func TestNewObject(t *testing.T) {
	f := Start(t)
	f.Create(t, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", strings.Replace(widgets, `"properties":{"size"`, `"required":["size","phase"],"properties":{"size"`, 1))
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/list/example.com/widgets")
	p.Sees("There is no Widget.")
	p.Click("New")
	p.Until(`document.querySelector("textarea")?.value === "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: example\n  namespace: default\nspec:\n  phase: Pending\n  size: 1\n"`)
	p.Type("textarea", "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: first\n  namespace: other\nspec:\n  phase: Pending\n  size: 1\n")
	p.Sees(`namespaces "other" not found`)
	p.Type("textarea", "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: first\nspec:\n  phase: Pending\n  size: 0\n")
	p.Sees("spec.size: Invalid value: 0")
	p.Type("textarea", "apiVersion: example.com/v1\nkind: Widget\nmetadata:\n  name: first\nspec:\n  phase: Pending\n  size: 5\n")
	p.Until(`![...document.querySelectorAll("button")].find(b => b.innerText === "Save").disabled && !document.querySelector(".errors li")`)
	p.Click("Save")
	p.Sees("Widget first created", "in default", "No problem is known")
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
	if f.Own {
		p.Tab("Changes")
		hidden("data.password")
	}
	p.Tab("YAML")
	p.Click("Show the values")
	p.Sees("c2Vjb25k")
}

// Every view can be looked at as it was.
func TestPast(t *testing.T) {
	OnlyOwn(t)
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
	OnlyOwn(t)
	f := Start(t)
	f.Create(t, "/api/v1/namespaces", `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"other"}}`)
	f.Create(t, configMaps, configMap("oldest", "before"))
	for i := range 130 {
		f.Create(t, configMaps, configMap(fmt.Sprintf("many-%03d", i), "x"))
	}
	f.Create(t, "/api/v1/namespaces/other/configmaps", configMap("elsewhere", "1"))
	f.Create(t, configMaps, configMap("one", "before"), configMap("gone", "1"))
	later := func() { <-time.After(3 * time.Millisecond) } // changes of one millisecond have one time
	later()
	f.Patch(t, configMaps+"/one?fieldManager=hand", `{"data":{"a":"after"}}`)
	var past struct {
		Items []struct{ Time string }
	}
	if err := f.Do(t.Context(), http.MethodGet, configMaps+"/one?history=true", nil, &past); err != nil || len(past.Items) != 2 {
		t.Fatal(err, past)
	}
	later()
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
	p.Until(`document.querySelectorAll(".entry").length > 100`)
	// A server that starts writes objects of its own between those of the test: the next hundred changes may lack the oldest ConfigMap.
	p.Go("#/changes?text=oldest&at=" + past.Items[0].Time)
	p.Sees("0 of 100 changes contain “oldest”")
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
	if f.Own { // values of objects are found, too, with the place of the match
		p.Until(`[...document.querySelectorAll("[role=option]")].some(o => o.innerText.includes("ConfigMap x") && o.innerText.includes("data.a: needle in a value") && o.querySelector("mark").innerText === "needle")`)
		p.Type(".query", "NEEDLE value")
		p.Until(`document.querySelectorAll("[role=option]").length === 1 && document.querySelector("[role=option]").innerText.includes("ConfigMap x")`)
		p.Type(".query", "needle")
		p.Until(`document.querySelector("[role=option]")?.innerText.includes("needle-1")`)
	}
	p.Key("Enter")
	p.Sees("ConfigMap needle-1")
}

// A server offers the console at its own port. Its users sign in with their tokens, and see as much as they may.
func TestConsoleOfServer(t *testing.T) {
	OnlyOwn(t)
	f := Start(t)
	f.Create(t, configMaps, configMap("visible", "1"))
	f.Create(t, "/api/v1/namespaces/default/serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"jane"}}`)
	f.Create(t, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"jane"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"kind":"ServiceAccount","name":"jane","namespace":"default"}]}`)
	var request struct{ Status struct{ Token string } }
	if err := f.Do(t.Context(), http.MethodPost, "/api/v1/namespaces/default/serviceaccounts/jane/token", rawJSON(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`), &request); err != nil {
		t.Fatal(err)
	}
	p := Open(t, f.URL+"/console/", chromedp.IgnoreCertErrors)
	p.Sees("Sign in")
	p.Type("[aria-label='Bearer token']", "wrong")
	p.Click(".failure button.main")
	p.Sees("Sign in", "Unauthorized")
	p.Type("[aria-label='Bearer token']", request.Status.Token)
	p.Click(".failure button.main")
	p.Sees("What are you looking for?", "system:serviceaccount:default:jane")
	p.Go("#/list/-/configmaps?namespace=default")
	p.Sees("visible")
	p.Go("#/list/-/secrets?namespace=default")
	p.Sees("You may not list these objects.", `cannot list resource "secrets"`)
}

// A console has all contexts of its kubeconfig. The address of a view has its context.
func TestContexts(t *testing.T) {
	f := Start(t)
	f.Create(t, configMaps, configMap("seen", "1"))
	data, err := os.ReadFile(f.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Clusters, Users, Contexts []struct {
			Name                   string
			Cluster, User, Context map[string]any
		}
		CurrentContext string `json:"current-context"`
	}
	if err := yaml.Unmarshal(data, &config); err != nil {
		t.Fatal(err)
	}
	other := config.Contexts[0]
	other.Name, other.Context = "any/other", map[string]any{"cluster": other.Context["cluster"], "user": "stranger", "namespace": "default"}
	config.Contexts = append(config.Contexts, other)
	stranger := config.Users[0]
	stranger.Name, stranger.User = "stranger", map[string]any{"token": "unknown"}
	config.Users = append(config.Users, stranger)
	if data, err = json.Marshal(config); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.Kubeconfig, data, 0o600); err != nil {
		t.Fatal(err)
	}
	p := Open(t, f.Console.Link())
	p.Sees("What are you looking for?")
	p.Go("#/list/-/configmaps?namespace=default")
	p.Sees("seen")
	p.Type("select[aria-label=Context]", "any/other")
	p.Sees("Unauthorized")
	if address := Eval[string](p, `location.hash`); !strings.Contains(address, "context=any%2Fother") {
		t.Errorf("the address has no context: %s", address)
	}
	p.Go("#/list/-/configmaps?namespace=default")
	p.Sees("seen")
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

// On a server that is no anykind, the pages say what is missing, and the feed has the changes since it was opened.
func TestElsewhere(t *testing.T) {
	f := Start(t)
	if f.Own {
		t.Skip("-reference start compares with kube-apiserver")
	}
	p := Open(t, f.Console.Link())
	p.Sees("This server is not anykind", "Kubernetes v1.37")
	p.Go("#/changes")
	p.Sees("This server keeps no history.")
	f.Create(t, configMaps, configMap("fresh", "1"))
	p.Sees("ConfigMap fresh in default created")
	f.Patch(t, configMaps+"/fresh", `{"data":{"a":"2"}}`)
	p.Sees("ConfigMap fresh in default updated by")
	if Eval[bool](p, `document.body.innerText.includes("Now")`) {
		t.Error("the page offers to look at the past")
	}
}
