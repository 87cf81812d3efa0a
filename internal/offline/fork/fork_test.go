package fork

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anykind/anykind/internal/offline/apiclient"
	"github.com/anykind/anykind/internal/offline/history"
)

// discovered are the kinds of a fake server: kind, plural, group and whether it has namespaces.
var discovered = []struct {
	kind, plural, group string
	namespaced          bool
}{
	{"ConfigMap", "configmaps", "", true}, {"Namespace", "namespaces", "", false}, {"Service", "services", "", true}, {"Event", "events", "", true},
	{"ServiceAccount", "serviceaccounts", "", true}, {"CustomResourceDefinition", "customresourcedefinitions", "apiextensions.k8s.io", false},
	{"Widget", "widgets", "example.com", true}, {"Pod", "pods", "", true},
}

// groups returns the discovery document of the core group, or of the others.
func groups(core bool) string {
	found := map[string][]string{}
	for _, k := range discovered {
		scope := map[bool]string{true: "Namespaced", false: "Cluster"}[k.namespaced]
		found[k.group] = append(found[k.group], fmt.Sprintf(`{"resource":%q,"responseKind":{"kind":%q},"scope":%q,"singularResource":"","verbs":["list"]}`, k.plural, k.kind, scope))
	}
	var items []string
	for group, resources := range found {
		if (group == "") == core {
			items = append(items, fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":"v1","resources":[%s]}]}`, group, strings.Join(resources, ",")))
		}
	}
	return `{"kind":"APIGroupDiscoveryList","items":[` + strings.Join(items, ",") + `]}`
}

// A fake is a server with a fork f, whose changes it has, and objects by path. It records writes.
type fake struct {
	changes []string
	objects map[string]string
	writes  []string
	faster  bool // what is to be deleted is gone already
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	path := strings.TrimPrefix(r.URL.Path, "/forks/f")
	body, _ := io.ReadAll(r.Body)
	switch {
	case r.Method == http.MethodDelete && f.faster:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","code":404,"message":"not found"}`)
	case r.Method != http.MethodGet:
		f.writes = append(f.writes, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		if r.Method == http.MethodPost { // a created object has a uid of the server
			body = bytes.Replace(body, []byte(`"metadata":{`), []byte(`"metadata":{"uid":"made",`), 1)
		}
		fmt.Fprintf(w, "%s", body)
	case r.URL.Path == "/forks":
		fmt.Fprint(w, `{"items":[{"name":"f","path":"/forks/f","by":"jane","created":"2026-11-26T08:00:00Z"}]}`)
	case r.URL.Path == "/forks/f":
		fmt.Fprint(w, `{"name":"f","path":"/forks/f"}`)
	case path == "/changes" && path != r.URL.Path:
		fmt.Fprintf(w, `{"kind":"ChangeList","items":[%s]}`, strings.Join(f.changes, ","))
	case path == "/api", path == "/apis":
		fmt.Fprint(w, groups(path == "/api"))
	case f.objects[r.URL.Path] != "":
		fmt.Fprint(w, f.objects[r.URL.Path])
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","code":404,"message":"not found"}`)
	}
}

func (f *fake) client(t *testing.T) Client {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return Client{apiclient.Server{Client: s.Client(), URL: s.URL}}
}

// document returns an object; more are its further fields, and meta those of its metadata.
func document(apiVersion, kind, namespace, name, meta, more string) string {
	if namespace != "" {
		meta += fmt.Sprintf(`,"namespace":%q`, namespace)
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q%s}%s}`, apiVersion, kind, name, meta, more)
}

// changed returns an item of a ChangeList; "" is no object.
func changed(before, after string) string {
	item := map[string]json.RawMessage{"revision": json.RawMessage(`"7"`), "type": json.RawMessage(`"MODIFIED"`)}
	if before == "" {
		item["type"] = json.RawMessage(`"ADDED"`)
	} else {
		item["before"] = json.RawMessage(before)
	}
	if after == "" {
		item["type"] = json.RawMessage(`"DELETED"`)
	} else {
		item["object"] = json.RawMessage(after)
	}
	data, _ := json.Marshal(item)
	return string(data)
}

func settings(color string, more string) string {
	return document("v1", "ConfigMap", "default", "settings", `,"uid":"u","resourceVersion":"5"`, fmt.Sprintf(`,"data":{"color":%q%s}`, color, more))
}

const at = "/api/v1/namespaces/default/configmaps/settings"

// A merge keeps the other changes of the server. A field that both have changed is a conflict.
func TestMerge(t *testing.T) {
	f := &fake{
		changes: []string{changed(settings("red", ""), settings("blue", ""))},
		objects: map[string]string{at: settings("red", `,"size":"9"`)},
	}
	steps, left, err := f.client(t).Merge(t.Context(), "f", false)
	if err != nil || len(steps) != 1 || len(left) > 0 || len(steps[0].Conflicts) > 0 {
		t.Fatalf("%v, left out %v, %v", steps, left, err)
	}
	into := history.Client{Server: f.client(t).Server, Manager: Manager}
	if err := into.Write(t.Context(), steps, func(*history.Step, string) {}); err != nil {
		t.Fatal(err)
	}
	want := []string{"PUT " + at + ` {"apiVersion":"v1","data":{"color":"blue","size":"9"},"kind":"ConfigMap","metadata":{"name":"settings","namespace":"default","resourceVersion":"5","uid":"u"}}`}
	if diff := cmp.Diff(want, f.writes); diff != "" {
		t.Error(diff)
	}

	f.objects[at] = settings("green", "")
	if steps, _, err = f.client(t).Merge(t.Context(), "f", false); err != nil || len(steps) != 1 || len(steps[0].Conflicts) != 1 {
		t.Fatalf("%v, %v", steps, err)
	}
	var out strings.Builder
	history.WritePlan(&out, steps)
	if line := `conflict: .data.color: was "red", the fork has "blue", the server has "green"`; !strings.Contains(out.String(), line) {
		t.Errorf("no %s in %s", line, &out)
	}
	f.objects[at] = settings("blue", "")
	if steps, _, err = f.client(t).Merge(t.Context(), "f", false); err != nil || len(steps) != 0 {
		t.Errorf("the server has the change already: %v, %v", steps, err)
	}
}

// Definitions and namespaces are created before their objects, and deleted after other objects. What the
// server or a controller makes is left out.
func TestMergeOrder(t *testing.T) {
	definition := func(name string) string {
		return document("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name, "", "")
	}
	owned := `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"x","controller":true}]`
	gone := document("v1", "ConfigMap", "", "gone", `,"uid":"u","resourceVersion":"5"`, "")
	f := &fake{
		changes: []string{
			changed("", document("v1", "ConfigMap", "new", "more", "", "")),
			changed("", document("v1", "ConfigMap", "new", "kube-root-ca.crt", "", "")),
			changed("", document("v1", "ServiceAccount", "new", "default", "", "")),
			changed(document("v1", "Namespace", "", "old", "", ""), ""),
			changed(document("v1", "ConfigMap", "old", "inside", "", ""), ""),
			changed(strings.Replace(gone, `"gone"`, `"gone","namespace":"default"`, 1), ""),
			changed("", document("v1", "Namespace", "", "new", "", "")),
			changed("", document("example.com/v1", "Widget", "new", "w", "", "")),
			changed("", definition("widgets.example.com")),
			changed("", document("v1", "Event", "new", "e", "", "")),
			changed("", document("v1", "Pod", "new", "p", owned, "")),
			changed("", document("v1", "Service", "new", "s", "", `,"spec":{"clusterIP":"10.0.0.7","clusterIPs":["10.0.0.7"],"type":"NodePort","ports":[{"port":80,"nodePort":30000}]}`)),
		},
		objects: map[string]string{
			"/api/v1/namespaces/old":                     document("v1", "Namespace", "", "old", `,"uid":"u","resourceVersion":"5"`, ""),
			"/api/v1/namespaces/default/configmaps/gone": strings.Replace(gone, `"gone"`, `"gone","namespace":"default"`, 1),
		},
	}
	steps, left, err := f.client(t).Merge(t.Context(), "f", false)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range steps {
		got = append(got, s.Action()+" "+s.Title())
	}
	want := []string{
		"create customresourcedefinitions.apiextensions.k8s.io/widgets.example.com", "create namespaces/new", "create configmaps/more in new",
		"create widgets.example.com/w in new", "create services/s in new", "delete configmaps/gone in default", "delete namespaces/old",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	slices.Sort(left)
	want = []string{"configmaps/inside in old", "configmaps/kube-root-ca.crt in new", "events/e in new", "pods/p in new", "serviceaccounts/default in new"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
	c := history.Client{Server: f.client(t).Server, Manager: Manager}
	if _, err := c.Prepare(t.Context(), steps, false); err != nil {
		t.Error(err)
	}
	dry := len(f.writes)
	if dry != 4 { // the rest needs a namespace or a definition that does not exist yet
		t.Errorf("dry runs: %v", f.writes)
	}
	if err := c.Write(t.Context(), steps, func(*history.Step, string) {}); err != nil {
		t.Fatal(err)
	}
	service := f.writes[dry+4]
	if strings.Contains(service, "10.0.0.7") || strings.Contains(service, "30000") || !strings.Contains(service, `"port":80`) {
		t.Errorf("the Service has allocated values: %s", service)
	}
}

// The commands say that a server has no forks.
func TestManage(t *testing.T) {
	f := &fake{}
	c := f.client(t)
	all, err := c.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Name != "f" || all[0].By != "jane" {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := c.Make(t.Context(), Spec{Name: "g", Lifetime: "1h"}); err != nil {
		t.Error(err)
	}
	if err := c.Delete(t.Context(), "f"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{`POST /forks {"name":"g","lifetime":"1h"}`, "DELETE /forks/f"}, f.writes); diff != "" {
		t.Error(diff)
	}
	if _, err := c.Changes(t.Context(), "none"); err == nil {
		t.Error("a fork that does not exist has changes")
	}
	s := httptest.NewServer(http.NotFoundHandler())
	defer s.Close()
	if _, err := (Client{apiclient.Server{Client: s.Client(), URL: s.URL}}).List(t.Context()); err == nil || !strings.Contains(err.Error(), "the server has no forks") {
		t.Error(err)
	}
}

// An object that an object of the fork owns gets the uid of its owner in the server. An owner that only the fork
// has is left out, also of objects that the server had before: the garbage collector would delete them.
func TestMergeOwners(t *testing.T) {
	owned := func(name, owner string) string {
		return document("v1", "ConfigMap", "default", name, fmt.Sprintf(`,"uid":"u-%s","ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":%q,"uid":"u-%[2]s"}]`, name, owner), "")
	}
	plain := func(name, uid string) string {
		return document("v1", "ConfigMap", "default", name, fmt.Sprintf(`,"uid":%q,"resourceVersion":"5"`, uid), "")
	}
	const maps = "/api/v1/namespaces/default/configmaps"
	for _, tt := range []struct {
		name    string
		changes []string
		objects map[string]string
		writes  []string // "METHOD path" and the uid of the owner
	}{
		{"a new owner", []string{changed("", owned("a", "z")), changed("", plain("z", "u-z"))}, nil, []string{"POST " + maps, "POST " + maps + " made"}},
		{"of an older object", []string{changed(plain("a", "u-a"), owned("a", "z")), changed("", plain("z", "u-z"))},
			map[string]string{maps + "/a": plain("a", "u-a")}, []string{"POST " + maps, "PUT " + maps + "/a made"}},
		{"an owner that the server has", []string{changed("", owned("a", "z")), changed("", plain("z", "u-z"))},
			map[string]string{maps + "/z": plain("z", "other")}, []string{"POST " + maps + " other"}},
		{"an owner that is gone", []string{changed(plain("a", "u-a"), owned("a", "z"))}, map[string]string{maps + "/a": plain("a", "u-a")}, nil},
		{"being deleted", []string{changed(plain("a", "u-a"), document("v1", "ConfigMap", "default", "a", `,"uid":"u-a","deletionTimestamp":"2026-11-20T08:00:00Z","finalizers":["f"]`, ""))},
			map[string]string{maps + "/a": plain("a", "u-a")}, []string{"DELETE " + maps + "/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{changes: tt.changes, objects: tt.objects}
			c := f.client(t)
			steps, _, err := c.Merge(t.Context(), "f", false)
			if err != nil {
				t.Fatal(err)
			}
			h := history.Client{Server: c.Server, Manager: Manager}
			if _, err := h.Prepare(t.Context(), steps, false); err != nil {
				t.Fatal(err)
			}
			f.writes = nil
			if err := h.Write(t.Context(), steps, func(*history.Step, string) {}); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, w := range f.writes {
				request, body, _ := strings.Cut(w, " {")
				if _, owner, ok := strings.Cut(body, `"ownerReferences":[`); ok {
					_, uid, _ := strings.Cut(owner, `"uid":"`)
					uid, _, _ = strings.Cut(uid, `"`)
					request += " " + uid
				}
				got = append(got, request)
			}
			if diff := cmp.Diff(tt.writes, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A definition that changes decides about its objects after the merge: they are not sent before.
func TestMergeDefinition(t *testing.T) {
	widget := func(a string) string {
		return document("example.com/v1", "Widget", "default", "w", `,"uid":"w","resourceVersion":"5"`, fmt.Sprintf(`,"spec":{"a":%q}`, a))
	}
	definition := func(a string) string {
		return document("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.com", `,"uid":"d","resourceVersion":"5"`, fmt.Sprintf(`,"spec":{"a":%q}`, a))
	}
	f := &fake{changes: []string{changed(widget("x"), widget("y")), changed(definition("x"), definition("y"))}, objects: map[string]string{
		"/apis/example.com/v1/namespaces/default/widgets/w":                           widget("x"),
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com": definition("x"),
	}}
	c := f.client(t)
	steps, _, err := c.Merge(t.Context(), "f", false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (history.Client{Server: c.Server}).Prepare(t.Context(), steps, false); err != nil || len(f.writes) != 1 || len(steps) != 2 || len(steps[1].Differences) != 1 {
		t.Error(err, f.writes, steps)
	}
}

// The server of a fork is the one that it is a fork of.
func TestOf(t *testing.T) {
	for url, want := range map[string]string{
		"https://a/forks/x": "https://a", "https://a": "https://a", "https://a/b/forks/x": "https://a/b", "https://a/forks/x/y": "https://a/forks/x/y",
	} {
		if got := Of(apiclient.Server{URL: url}).URL; got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
	}
}

// An object that a controller has deleted meanwhile needs no deletion.
func TestMergeOfGone(t *testing.T) {
	f := &fake{changes: []string{changed(settings("red", ""), "")}, objects: map[string]string{at: settings("red", "")}, faster: true}
	c := f.client(t)
	steps, _, err := c.Merge(t.Context(), "f", false)
	if err != nil || len(steps) != 1 {
		t.Fatalf("%v, %v", steps, err)
	}
	done := ""
	into := history.Client{Server: c.Server, Manager: Manager}
	if err := into.Write(t.Context(), steps, func(_ *history.Step, result string) { done = result }); err != nil || done != "deleted" {
		t.Errorf("%s, %v", done, err)
	}
}
