package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/server/search"
)

// searched returns the results of a search as text, once the index is complete.
func searched(t *testing.T, c *http.Client, server, token, q string) string {
	t.Helper()
	for {
		code, answer := ask(t, c, "GET", server+"/search?q="+url.QueryEscape(q), token, "")
		var r search.Results
		if err := json.Unmarshal([]byte(answer), &r); err != nil || code != 200 {
			t.Fatalf("%s: %d %s", q, code, answer)
		}
		if r.Indexing {
			continue
		}
		var all []string
		for _, i := range r.Items {
			all = append(all, fmt.Sprintf("%s/%s/%s %s=%s", i.Resource, i.Namespace, i.Name, i.Path, i.Value))
		}
		return strings.Join(all, "; ")
	}
}

// A user finds the objects that it may list, and no data of Secrets.
func TestSearch(t *testing.T) {
	tokens := write(t, filepath.Join(t.TempDir(), "tokens"), []byte("jane-token,jane,1\n"))
	a := start(t, Options{TokenFile: tokens})
	defer stop(t, a)
	c, jane := client(t, a, admin(t, a)), client(t, a, nil)
	expect := func(c *http.Client, server, token, q, want string) {
		t.Helper()
		if got := searched(t, c, server, token, q); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", q, got, want)
		}
	}
	must(t, a, "POST", "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	for _, namespace := range []string{"default", "other"} {
		must(t, a, "POST", "/api/v1/namespaces/"+namespace+"/configmaps", `{"metadata":{"name":"zebra"},"data":{"k":"horse"}}`)
		must(t, a, "POST", "/api/v1/namespaces/"+namespace+"/secrets",
			`{"metadata":{"name":"zebra","labels":{"stripes":"yes"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"stringData\":{\"k\":\"hidden-horse\"}}"}},"stringData":{"k":"hidden-horse"}}`)
	}
	expect(c, a.URL(), "", "zebra", "configmaps/default/zebra metadata.name=zebra; configmaps/other/zebra metadata.name=zebra; secrets/default/zebra metadata.name=zebra; secrets/other/zebra metadata.name=zebra")
	expect(c, a.URL(), "", "zebra horse", "configmaps/default/zebra data.k=horse; configmaps/other/zebra data.k=horse")
	expect(c, a.URL(), "", "hidden-horse", "")
	expect(c, a.URL(), "", "aGlkZGVuLWhvcnNl", "")
	expect(c, a.URL(), "", "stripes=yes other", "secrets/other/zebra metadata.labels.stripes=stripes=yes")

	// The path needs a right of its own. Then the rights to list count, in each namespace.
	answers(t, jane, "GET", a.URL()+"/search?q=zebra", "jane-token", "", 403)
	answers(t, jane, "GET", a.URL()+"/search?q=zebra", "", "", 401)
	const access = "/apis/rbac.authorization.k8s.io/v1"
	bind := func(where, kind, name, rules string) {
		must(t, a, "POST", access+where+"/"+strings.ToLower(kind)+"s", `{"metadata":{"name":"`+name+`"},"rules":[`+rules+`]}`)
		must(t, a, "POST", access+where+"/"+strings.ToLower(kind)+"bindings",
			`{"metadata":{"name":"`+name+`"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"`+kind+`","name":"`+name+`"},"subjects":[{"kind":"User","name":"jane"}]}`)
	}
	bind("", "ClusterRole", "searching", `{"nonResourceURLs":["/search"],"verbs":["get"]}`)
	expect(jane, a.URL(), "jane-token", "zebra", "")
	bind("/namespaces/other", "Role", "reading", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["list"]},{"apiGroups":[""],"resources":["secrets"],"verbs":["get","watch"]}`)
	expect(jane, a.URL(), "jane-token", "zebra", "configmaps/other/zebra metadata.name=zebra")
	bind("", "ClusterRole", "listing", `{"apiGroups":[""],"resources":["secrets"],"verbs":["list"]}`)
	expect(jane, a.URL(), "jane-token", "zebra", "configmaps/other/zebra metadata.name=zebra; secrets/default/zebra metadata.name=zebra; secrets/other/zebra metadata.name=zebra")

	answers(t, c, "GET", a.URL()+"/search", "", "", 400, "q: Invalid value", `"kind":"Status"`)
	answers(t, c, "DELETE", a.URL()+"/search?q=a", "", "", 405)
	answers(t, c, "GET", a.URL()+"/search/x?q=a", "", "", 404)

	// A fork has its own objects.
	fork := forkOf(t, c, a.URL(), `{"name":"one"}`)
	answers(t, c, "DELETE", fork+"/api/v1/namespaces/default/configmaps/zebra", "", "", 200)
	answers(t, c, "POST", fork+"/api/v1/namespaces/default/configmaps", "", `{"metadata":{"name":"zebra-2"}}`, 201)
	expect(c, fork, "", "configmap zebra", "configmaps/other/zebra kind=ConfigMap; configmaps/default/zebra-2 kind=ConfigMap")
	expect(c, a.URL(), "", "configmap zebra", "configmaps/default/zebra kind=ConfigMap; configmaps/other/zebra kind=ConfigMap")
	answers(t, c, "DELETE", a.URL()+"/forks/one", "", "", 200)
}

// Searches outlive changes of definitions: a kind of a CustomResourceDefinition is found in a version that is served.
func TestSearchDefinitions(t *testing.T) {
	a := start(t, Options{Dir: t.TempDir()})
	defer stop(t, a)
	c := client(t, a, admin(t, a))
	expect := func(q, want string) {
		t.Helper()
		if got := searched(t, c, a.URL(), "", q); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", q, got, want)
		}
	}
	const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	version := func(name, field string, served, storage bool) string {
		return fmt.Sprintf(`{"name":%q,"served":%v,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","properties":{%q:{"type":"string"}}}}}`, name, served, storage, field)
	}
	definition := func(versions ...string) string {
		return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"zebras.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"zebras","singular":"zebra","kind":"Zebra","listKind":"ZebraList"},"versions":[` + strings.Join(versions, ",") + `]}}`
	}
	expect("grevy", "")
	must(t, a, "POST", definitions, definition(version("v1", "kind1", true, true)))
	must(t, a, "POST", "/apis/example.com/v1/namespaces/default/zebras", `{"apiVersion":"example.com/v1","kind":"Zebra","metadata":{"name":"zed"},"kind1":"grevy"}`)
	expect("grevy", "zebras/default/zed kind1=grevy")
	// The field is not served any more.
	must(t, a, "PATCH", definitions+"/zebras.example.com", `{"spec":{"versions":[`+version("v1", "kind1", false, false)+","+version("v2", "kind2", true, true)+`]}}`)
	expect("grevy", "")
	expect("zed", "zebras/default/zed metadata.name=zed")
	must(t, a, "DELETE", definitions+"/zebras.example.com", "")
	for strings.Contains(searched(t, c, a.URL(), "", "zed"), "zebras") {
		continue
	}
	expect("grevy", "")
}
