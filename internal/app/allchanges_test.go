package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/store/kv"
)

// A shownChange is an item of a ChangeList.
type shownChange struct {
	Revision                                                int64 `json:",string"`
	Time, Type, User, Verb, Manager, Subresource, Request   string
	Group, Version, Resource, Kind, Namespace, Name, Reason string
	Error                                                   string
	Before, Object                                          json.RawMessage
}

// A shownList is a ChangeList.
type shownList struct {
	Metadata struct{ ResourceVersion, Earlier string }
	Items    []shownChange
}

// allChanges returns the changes of all kinds, as a user sees them.
func (p *people) allChanges(user, query string) (l shownList) {
	p.Helper()
	if err := json.Unmarshal([]byte(p.does(user, "GET", "/history/changes?"+query, "", 200, "")), &l); err != nil {
		p.Fatal(err)
	}
	return l
}

// String names a change.
func (c shownChange) String() string {
	return fmt.Sprintf("%d %s %s/%s/%s by %s", c.Revision, c.Type, c.Resource, c.Namespace, c.Name, c.User)
}

const toChanges = `{metadata: {name: to-changes}, rules: [{nonResourceURLs: [/history/changes], verbs: [get]}]}`

// bind binds a role to bob.
func (p *people) bind(namespace, kind, name, role string) string {
	p.Helper()
	path := rbacPath
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	document := `{metadata: {name: ` + name + `}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ` + kind + `, name: ` + role + `}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: bob}]}`
	plural := "/clusterrolebindings"
	if namespace != "" {
		plural = "/rolebindings"
	}
	return p.does("root", "POST", path+plural, document, 201, "")
}

// moved waits until all states up to a revision are only in the file.
func (p *people) moved(until int64) {
	p.Helper()
	store, ok := kv.As[kv.Historian](p.app.backend)
	if !ok {
		p.Fatal("the store has no history")
	}
	for store.Recent() < until {
		p.does("root", "GET", inDefault, "", 200, "")
	}
}

// The page needs a right of its own. It serves Secrets and all else to users who may list them, and changes of definitions
// change the objects that it shows.
func TestAllChanges(t *testing.T) {
	p := startPeople(t, Options{Dir: t.TempDir(), History: Remembering{On: true}})
	defer stop(t, p.app)
	p.does("", "GET", "/history/changes", "", 401, "")
	p.does("bob", "GET", "/history/changes", "", 403, `forbidden: User "bob" cannot get path "/history/changes"`)
	p.does("root", "POST", rbacPath+"/clusterroles", toChanges, 201, "")
	p.bind("", "ClusterRole", "to-changes", "to-changes")
	if got := p.allChanges("bob", "all=true").Items; len(got) > 0 {
		t.Errorf("without rights, bob sees %v", got)
	}
	p.grant(`{apiGroups: [""], resources: [configmaps], verbs: [list]}, {apiGroups: [""], resources: [secrets], verbs: [get, watch]}, {apiGroups: [example.com], resources: ["*"], verbs: ["*"]}`)
	since := p.allChanges("root", "limit=1").Metadata.ResourceVersion
	p.does("root", "POST", "/api/v1/namespaces", `{metadata: {name: other}}`, 201, "")
	p.does("root", "POST", configMaps, `{metadata: {name: a}, data: {k: one}}`, 201, "")
	p.does("root", "POST", "/api/v1/namespaces/other/configmaps", `{metadata: {name: a}}`, 201, "")
	p.does("root", "POST", inDefault+"/secrets", `{metadata: {name: s}, stringData: {k: hush}}`, 201, "")
	p.does("root", asMerge, configMaps+"/a?fieldManager=hand", `{data: {k: two}}`, 200, "")
	p.does("root", "DELETE", configMaps+"/a", "", 200, "")
	mine := func(user, query string) (got []string) {
		t.Helper()
		for _, c := range p.allChanges(user, "since="+since+query).Items {
			if c.User == "root" {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s/%s/%s %s", c.Type, c.Resource, c.Namespace, c.Name, c.Error)))
			}
		}
		return got
	}
	want := []string{"ADDED configmaps/default/a", "MODIFIED configmaps/default/a", "DELETED configmaps/default/a"}
	if got := mine("bob", ""); !slices.Equal(got, want) {
		t.Errorf("bob sees %q", got)
	}
	if got := mine("bob", "&namespace=other"); len(got) > 0 {
		t.Errorf("bob sees %q", got)
	}
	all := slices.Concat([]string{"ADDED namespaces//other"}, want[:1], []string{"ADDED configmaps/other/a", "ADDED secrets/default/s"}, want[1:])
	if got := mine("root", ""); !slices.Equal(got, all) {
		t.Errorf("root sees %q", got)
	}
	if answer := p.does("root", "GET", "/history/changes?since="+since, "", 200, ""); !strings.Contains(answer, `"k":"aHVzaA=="`) || !strings.Contains(answer, `"manager":"hand"`) {
		t.Errorf("root sees no Secret, or no manager: %s", answer)
	}

	// Objects are shown by the present definition of their kind, in its preferred version.
	since = p.allChanges("root", "limit=1").Metadata.ResourceVersion
	p.does("root", "POST", gadgets, gadgetsOf(`{name: v1, served: true, storage: true, `+fieldsOf("a", "b")+`}`), 201, "")
	p.does("root", "POST", "/apis/example.com/v1/namespaces/default/gadgets", `{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g}, a: one, b: two}`, 201, "")
	gadget := func(version, fields string) {
		t.Helper()
		got := p.allChanges("bob", "since="+since).Items
		if len(got) != 1 || got[0].Version != version || !strings.HasPrefix(string(got[0].Object), `{"a":"one","apiVersion":"example.com/`+version+`",`+fields) {
			t.Errorf("bob sees %s, want %s with %s", got, version, fields)
		}
	}
	gadget("v1", `"b":"two","kind":"Gadget"`)
	p.does("root", "PATCH merge-patch+json", gadgets+"/gadgets.example.com", `{spec: {versions: [{name: v1, served: true, storage: false, `+fieldsOf("a")+`}, {name: v2, served: true, storage: true, `+fieldsOf("a")+`}]}}`, 200, "")
	gadget("v2", `"kind":"Gadget"`)
	p.does("root", "PATCH merge-patch+json", gadgets+"/gadgets.example.com", `{spec: {versions: [{name: v1, served: true, storage: false, `+fieldsOf("a")+`}, {name: v2, served: false, storage: true, `+fieldsOf("a")+`}]}}`, 200, "")
	gadget("v1", `"kind":"Gadget"`)
	p.does("root", "DELETE", gadgets+"/gadgets.example.com", "", 200, "")
	for code := 200; code != 404; {
		code, _ = ask(t, p.client, "GET", p.app.URL()+gadgets+"/gadgets.example.com", "root", "")
	}
	if got := p.allChanges("bob", "since="+since).Items; len(got) > 0 {
		t.Errorf("bob sees %s of a kind that is gone", got)
	}
	if got := mine("root", ""); len(got) < 4 || got[0] != "ADDED customresourcedefinitions//gadgets.example.com" {
		t.Errorf("root sees %q", got)
	}
}

const gadgets = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// gadgetsOf is the definition of Gadgets, with versions.
func gadgetsOf(versions ...string) string {
	return `{metadata: {name: gadgets.example.com}, spec: {group: example.com, scope: Namespaced, names: {plural: gadgets, singular: gadget, kind: Gadget, listKind: GadgetList}, versions: [` + strings.Join(versions, ", ") + `]}}`
}

// fieldsOf is the schema of a version with fields.
func fieldsOf(fields ...string) string {
	return `schema: {openAPIV3Schema: {type: object, properties: {` + strings.Join(fields, ": {type: string}, ") + `: {type: string}}}}`
}

// A grantModel is the rights of bob from a revision on, by kind and namespace.
type grantModel struct {
	from int64
	has  map[string]bool
}

// Random writes and changes of rights: the changes of all kinds are those of all collections, in order, and bob sees those of
// objects that he may list and could list then.
func TestAllChangesModel(t *testing.T) {
	o := Options{Dir: t.TempDir(), History: Remembering{On: true, recent: time.Millisecond}}
	p := startPeople(t, o)
	defer func() { stop(t, p.app) }()
	p.does("root", "POST", rbacPath+"/clusterroles", toChanges, 201, "")
	p.bind("", "ClusterRole", "to-changes", "to-changes")
	p.does("root", "POST", "/api/v1/namespaces", `{metadata: {name: other}}`, 201, "")
	p.does("root", "POST", gadgets, gadgetsOf(`{name: v1, served: true, storage: true, `+fieldsOf("a")+`}`), 201, "")
	random := rand.New(rand.NewPCG(1, 7))
	grants := p.randomWrites(random)
	last, err := strconv.ParseInt(p.allChanges("root", "limit=1").Metadata.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	p.moved(last)
	want := p.collections(last)
	same := func(user, query string, got, want []shownChange) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b shownChange) bool {
			return a.String() == b.String() && a.Time == b.Time && a.Verb == b.Verb && a.Manager == b.Manager && string(a.Before) == string(b.Before) && string(a.Object) == string(b.Object)
		}) {
			t.Fatalf("%s sees of %q\n%v\nwant\n%v", user, query, got, want)
		}
	}
	then := func(revision int64) map[string]bool {
		i, _ := slices.BinarySearchFunc(grants, revision+1, func(g grantModel, r int64) int { return cmp.Compare(g.from, r) })
		return grants[i-1].has
	}
	seen := map[string][]shownChange{"root": want}
	for _, c := range want {
		at := c.Resource + " " + c.Namespace
		if grants[len(grants)-1].has[at] && then(c.Revision)[at] {
			seen["bob"] = append(seen["bob"], c)
		}
	}
	if len(seen["bob"]) < 20 || len(seen["bob"]) > len(want)/2 {
		t.Fatalf("bob may see %d of %d", len(seen["bob"]), len(want))
	}
	watched := 0
	for at := range grants[len(grants)-1].has {
		kind, namespace, _ := strings.Cut(at, " ")
		var all, may []int64
		for _, c := range want {
			if c.Resource == kind && c.Namespace == namespace {
				if all = append(all, c.Revision); then(c.Revision)[at] {
					may = append(may, c.Revision)
				}
			}
		}
		if p.seesChanges(collection(kind, namespace), all, may) {
			watched++
		}
	}
	if watched == 0 {
		t.Error("no watch has ended before a change that bob may not see")
	}
	for user, all := range seen {
		// Pages back from the end are all of it.
		var pages []shownChange
		for until := last; ; {
			query := fmt.Sprintf("limit=%d&until=%d", 1+random.IntN(60), until)
			l := p.allChanges(user, query)
			if pages = slices.Concat(l.Items, pages); l.Metadata.Earlier == "" {
				break
			}
			if until, err = strconv.ParseInt(l.Metadata.Earlier, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		same(user, "all pages", pages, all)
		for range 40 {
			since, until, limit, namespace := random.Int64N(last), 1+random.Int64N(last), 1+random.IntN(100), []string{"", "default", "other"}[random.IntN(3)]
			query := fmt.Sprintf("since=%d&until=%d&limit=%d&namespace=%s", since, until, limit, namespace)
			if i := random.IntN(len(all)); random.IntN(4) == 0 {
				query, until = strings.Replace(query, fmt.Sprintf("until=%d", until), "until="+url.QueryEscape(all[i].Time), 1), all[i].Revision
				for i++; i < len(all) && all[i].Time == all[i-1].Time; i++ {
					until = all[i].Revision
				}
			}
			var want []shownChange
			for _, c := range all {
				if c.Revision > since && c.Revision <= until && (namespace == "" || c.Namespace == namespace) {
					want = append(want, c)
				}
			}
			same(user, query, p.allChanges(user, query).Items, want[max(0, len(want)-limit):])
		}
	}
}

// collections returns the changes of all collections up to a revision, in order.
func (p *people) collections(until int64) (all []shownChange) {
	p.Helper()
	for _, g := range p.app.catalog.Set().Groups() {
		for _, d := range g.Definitions {
			if !d.Stored() || !d.Allows("list") || !d.StoredAs.Empty() && d.StoredAs.Group != d.Group || d.Plural == "leases" || d.Plural == "events" {
				continue
			}
			version := g.Versions[slices.IndexFunc(g.Versions, func(name string) bool { v := d.Version(name); return v != nil && v.Served })]
			var l shownList
			if err := json.Unmarshal([]byte(p.does("root", "GET", g.Path()+"/"+version+"/"+d.Plural+"?history=true", "", 200, "")), &l); err != nil {
				p.Fatal(err)
			}
			for _, c := range l.Items {
				var o struct {
					Metadata struct{ Name, Namespace string }
				}
				state := c.Object
				if state == nil {
					state = c.Before
				}
				if err := json.Unmarshal(state, &o); err != nil {
					p.Fatal(err)
				}
				c.Group, c.Version, c.Resource, c.Kind, c.Namespace, c.Name = d.Group, version, d.Plural, d.Kind, o.Metadata.Namespace, o.Metadata.Name
				if c.Revision <= until {
					all = append(all, c)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b shownChange) int { return cmp.Compare(a.Revision, b.Revision) })
	return all
}

// seesChanges checks the changes of a collection that bob sees, and a watch that ends before one that he may not see. It reports
// whether there is such a watch.
func (p *people) seesChanges(path string, all, may []int64) bool {
	p.Helper()
	var l shownList
	if err := json.Unmarshal([]byte(p.does("bob", "GET", path+"?history=true", "", 200, "")), &l); err != nil {
		p.Fatal(err)
	}
	if !slices.EqualFunc(l.Items, may, func(c shownChange, revision int64) bool { return c.Revision == revision }) {
		p.Fatalf("bob sees of %s\n%v\nwant %v of %v", path, l.Items, may, all)
	}
	for i, from := range all {
		if !slices.Contains(may, from) {
			continue
		}
		n := slices.IndexFunc(all[i:], func(revision int64) bool { return !slices.Contains(may, revision) })
		if n < 2 {
			continue
		}
		_, answer := ask(p, p.client, "GET", fmt.Sprintf("%s%s?watch=true&timeoutSeconds=9&resourceVersion=%d", p.app.URL(), path, from), "bob", "")
		if strings.Count(answer, `"type":"`) != n || !strings.Contains(answer, "the rights at the time of that state did not allow it") {
			p.Fatalf("a watch of %s after %d, with rights for %d events, is\n%s", path, from, n-1, answer)
		}
		return true
	}
	return false
}

// collection is the path of a kind in a namespace.
func collection(kind, namespace string) string {
	group := "/api/v1"
	if kind == "gadgets" {
		group = "/apis/example.com/v1"
	}
	return group + "/namespaces/" + namespace + "/" + kind
}

// randomWrites writes objects in two namespaces, and changes the rights of bob.
func (p *people) randomWrites(random *rand.Rand) []grantModel {
	kinds, namespaces := []string{"configmaps", "secrets", "gadgets"}, []string{"default", "other"}
	there := map[string]bool{}
	has := map[string]map[string]bool{} // by the grant, and then by kind and namespace
	grants := []grantModel{{has: map[string]bool{}}}
	granted := func(answer string) {
		var o struct {
			Metadata struct {
				ResourceVersion int64 `json:",string"`
			}
		}
		_ = json.Unmarshal([]byte(answer), &o)
		now := grantModel{from: o.Metadata.ResourceVersion, has: map[string]bool{}}
		for _, pairs := range has {
			for pair := range pairs {
				now.has[pair] = true
			}
		}
		if now.from == 0 { // the answer to a deletion has no revision
			now.from, _ = strconv.ParseInt(p.allChanges("root", "limit=1&all=true").Metadata.ResourceVersion, 10, 64)
		}
		grants = append(grants, now)
	}
	for i := range 400 {
		kind, namespace := kinds[random.IntN(3)], namespaces[random.IntN(2)]
		if random.IntN(8) == 0 {
			// A role and its binding in one namespace; or a change of its rules.
			name, rules := "r-"+kind, `{metadata: {name: r-`+kind+`}, rules: [{apiGroups: ["*"], resources: [`+kind+`], verbs: [list, watch]}]}`
			at := rbacPath + "/namespaces/" + namespace
			switch key := kind + " " + namespace; {
			case !there["role "+key]:
				p.does("root", "POST", at+"/roles", rules, 201, "")
				has[key] = map[string]bool{key: true}
				there["role "+key] = true
				granted(p.bind(namespace, "Role", name, name))
			case has[key] != nil:
				delete(has, key)
				granted(p.does("root", asMerge, at+"/roles/"+name, `{rules: []}`, 200, ""))
			case random.IntN(2) == 0:
				has[key] = map[string]bool{key: true}
				granted(p.does("root", asMerge, at+"/roles/"+name, `{rules: [{apiGroups: ["*"], resources: [`+kind+`], verbs: [list, watch]}]}`, 200, ""))
			default:
				p.does("root", "DELETE", at+"/roles/"+name, "", 200, "")
				p.does("root", "DELETE", at+"/rolebindings/"+name, "", 200, "")
				delete(there, "role "+key)
			}
			continue
		}
		name := fmt.Sprintf("o%d", random.IntN(4))
		at := collection(kind, namespace)
		body := fmt.Sprintf(`{metadata: {name: %s, labels: {n: "%d"}}}`, name, i)
		if kind == "gadgets" {
			body = fmt.Sprintf(`{apiVersion: example.com/v1, kind: Gadget, metadata: {name: %s}, a: "%d"}`, name, i)
		}
		switch key := at + name; {
		case !there[key]:
			p.does("root", "POST", at, body, 201, "")
			there[key] = true
		case random.IntN(3) == 0:
			p.does("root", "DELETE", at+"/"+name, "", 200, "")
			delete(there, key)
		default:
			p.does("root", asMerge, at+"/"+name, fmt.Sprintf(`{metadata: {labels: {n: "%d"}}}`, i), 200, "")
		}
	}
	return grants
}
