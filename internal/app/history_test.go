package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/store/kv"
)

// revisionOf returns the resourceVersion of an answer.
func revisionOf(t *testing.T, answer string) string {
	t.Helper()
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(answer), &o); err != nil || o.Metadata.ResourceVersion == "" {
		t.Fatalf("%s has no resourceVersion: %v", answer, err)
	}
	return o.Metadata.ResourceVersion
}

// moment returns the present time as a query for asOf. Later writes have later times.
func moment() string {
	now := time.Now().Truncate(time.Millisecond)
	for !time.Now().After(now.Add(time.Millisecond)) { // the resolution of the history
	}
	return "?asOf=" + url.QueryEscape(now.Format(time.RFC3339Nano))
}

// changesOf returns the changes of a list: type, user, verb, manager, and subresource.
func changesOf(t *testing.T, answer string) (changes []string) {
	t.Helper()
	var list struct {
		Kind  string
		Items []struct{ Revision, Time, Type, User, Verb, Manager, Subresource, Request string }
	}
	if err := json.Unmarshal([]byte(answer), &list); err != nil || list.Kind != "ChangeList" {
		t.Fatalf("%s: %v", answer, err)
	}
	for _, c := range list.Items {
		if c.Revision == "" || c.Time == "" || c.User != "system:apiserver" && c.Request == "" {
			t.Errorf("a change without revision, time or request: %+v", c)
		}
		changes = append(changes, strings.TrimSpace(strings.Join([]string{c.Type, c.User, c.Verb, c.Manager, c.Subresource}, " ")))
	}
	return changes
}

// A server with a history answers reads of old states, before and after a restart, and forgets objects.
func TestHistory(t *testing.T) {
	dir := t.TempDir()
	o := Options{Dir: dir, History: Remembering{On: true}}
	p := startPeople(t, o)
	const maps, secrets = inDefault + "/configmaps", inDefault + "/secrets"
	const role = `{metadata: {name: reader}, rules: [{apiGroups: [""], resources: [secrets, configmaps], verbs: [get, list, watch]}]}`
	const binding = `{metadata: {name: NAME}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: NAME}]}`
	const roles = rbacPath + "/namespaces/default"
	grant := func(user string) {
		p.does("root", "POST", roles+"/rolebindings", strings.ReplaceAll(binding, "NAME", user), 201, "")
	}
	empty := moment()
	p.does("root", "POST", roles+"/roles", role, 201, "")
	grant("ann")
	first := revisionOf(t, p.does("root", "POST", maps, `{metadata: {name: a}, data: {k: one}}`, 201, ""))
	one := moment()
	p.does("root", asMerge, maps+"/a?fieldManager=hand", `{data: {k: two}}`, 200, "")
	two := moment()
	p.does("root", "DELETE", maps+"/a", "", 200, "")
	p.does("root", "POST", secrets, `{metadata: {name: s}, stringData: {k: hush}}`, 201, "")
	kept := revisionOf(t, p.does("root", asMerge, secrets+"/s", `{stringData: {k: quiet}}`, 200, ""))
	grant("bob")
	p.does("root", "DELETE", roles+"/rolebindings/ann", "", 200, "")
	p.does("bob", "GET", maps+"/a"+one, "", 200, "") // a recent state needs the rights of now

	has := func(answer string, words ...string) {
		t.Helper()
		for _, w := range words {
			if !strings.Contains(answer, w) {
				t.Errorf("%s\nhas no %s", answer, w)
			}
		}
	}
	reads := func() {
		t.Helper()
		p.does("root", "GET", maps+"/a", "", 404, "")
		p.does("root", "GET", maps+"/a"+empty, "", 404, `configmaps "a" not found`)
		has(p.does("root", "GET", maps+"/a"+one, "", 200, ""), `"k":"one"`, `"resourceVersion":"`+first+`"`)
		has(p.does("root", "GET", maps+"/a"+two, "", 200, ""), `"k":"two"`)
		has(p.does("root", "GET", maps+one, "", 200, ""), `"k":"one"`)
		has(p.does("root", "GET", maps+"/a?resourceVersionMatch=Exact&resourceVersion="+first, "", 200, ""), `"k":"one"`)
		p.does("root", "GET", maps+"/a"+one+"&resourceVersion=1", "", 400, "asOf and resourceVersion are mutually exclusive: each names a state")
		has(p.does("root", "GET", maps+"?watch=1&timeoutSeconds=1&"+one[1:], "", 200, ""), `"type":"MODIFIED"`, `"k":"two"`)
		got := changesOf(t, p.does("root", "GET", maps+"/a?history=true", "", 200, ""))
		if want := []string{"ADDED root create Go-http-client", "MODIFIED root patch hand", "DELETED root delete Go-http-client"}; !slices.Equal(got, want) {
			t.Errorf("changes %q, want %q", got, want)
		}
		got = changesOf(t, p.does("root", "GET", maps+"?history=true&limit=1", "", 200, ""))
		if len(got) != 1 {
			t.Errorf("newest change %q", got)
		}
		got = changesOf(t, p.does("root", "GET", "/api/v1/namespaces/default?history=true", "", 200, ""))
		if len(got) == 0 || !strings.HasPrefix(got[0], "ADDED system:apiserver create kube-apiserver") {
			t.Errorf("changes of a namespace %q", got)
		}
	}
	reads()
	stop(t, p.app)
	o.History.recent = time.Millisecond
	p = startPeople(t, o)
	defer func() { stop(t, p.app) }()
	store, ok := kv.As[kv.Historian](p.app.backend)
	if !ok {
		t.Fatal("the store has no history")
	}
	last, err := strconv.ParseInt(kept, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for store.Recent() < last { // the states move to the file
		p.does("root", "GET", secrets+"/s", "", 200, "")
	}
	reads()

	// ann had rights then, and has none now. bob has rights now, and had none then.
	p.does("ann", "GET", maps+"/a"+one, "", 403, `configmaps "a" is forbidden: User "ann" cannot get resource "configmaps" in API group "" in the namespace "default"`)
	const lacked = `User "bob" cannot %s resource "configmaps" in API group "" in the namespace "default": the rights at the time of that state did not allow it`
	p.does("bob", "GET", maps+"/a"+one, "", 403, `configmaps "a" is forbidden: `+fmt.Sprintf(lacked, "get"))
	p.does("bob", "GET", maps+"/a?resourceVersionMatch=Exact&resourceVersion="+first, "", 403, `configmaps "a" is forbidden: `+fmt.Sprintf(lacked, "get"))
	p.does("bob", "GET", maps+one, "", 403, `configmaps is forbidden: `+fmt.Sprintf(lacked, "list"))
	p.does("bob", "GET", maps+"?watch=1&resourceVersion="+first, "", 403, `configmaps is forbidden: `+fmt.Sprintf(lacked, "watch"))
	p.does("bob", "GET", maps+"/a?history=true", "", 403, `configmaps "a" is forbidden: `+fmt.Sprintf(lacked, "get"))
	grant("ann")
	p.does("ann", "GET", maps+"/a"+one, "", 200, "")

	// A forgotten value is in no recent state either, and in no watch.
	hushed := revisionOf(t, p.does("root", "POST", secrets, `{metadata: {name: recent}, stringData: {k: hush}}`, 201, ""))
	p.does("root", asMerge, secrets+"/recent", `{stringData: {k: quiet}}`, 200, "")
	states := []string{"?resourceVersionMatch=Exact&resourceVersion=" + hushed, "?watch=1&timeoutSeconds=1&resourceVersion=" + kept}
	for i := range 2 {
		for _, query := range states {
			if answer := p.does("root", "GET", secrets+query, "", 200, ""); strings.Contains(answer, "aHVzaA==") != (i == 0) {
				t.Errorf("%s: %s", query, answer)
			}
		}
		p.does("root", "POST", "/history/forget", `{resource: secrets, namespace: default, name: recent}`, 200, "")
	}

	const forget = `{resource: secrets, namespace: default, name: s}`
	has(p.does("root", "GET", secrets+"/s?history=true", "", 200, ""), "aHVzaA==", "cXVpZXQ=")
	p.does("ann", "POST", "/history/forget", forget, 403, "")
	p.does("root", "POST", "/history/forget", `{resource: pots, name: s}`, 404, "")
	has(p.does("root", "POST", "/history/forget", forget, 200, ""), `"status":"Success"`)
	if answer := p.does("root", "GET", secrets+"/s?history=true", "", 200, ""); strings.Contains(answer, "aHVzaA==") {
		t.Errorf("the history has a forgotten value: %s", answer)
	}
	has(p.does("root", "GET", secrets+"/s", "", 200, ""), "cXVpZXQ=")
	has(p.does("root", "GET", secrets+"/s?resourceVersionMatch=Exact&resourceVersion="+kept, "", 200, ""), "cXVpZXQ=")
}

// Without RBAC among the authorizers, the rights of now are enough for an old state.
func TestHistoryWithoutRoles(t *testing.T) {
	o := Options{Dir: t.TempDir(), History: Remembering{On: true}}
	o.Authorization.Modes = []string{AllowAlways}
	p := startPeople(t, o)
	first := revisionOf(t, p.does("bob", "POST", inDefault+"/configmaps", `{metadata: {name: a}}`, 201, ""))
	stop(t, p.app)
	p = startPeople(t, o)
	defer stop(t, p.app)
	p.does("bob", "DELETE", inDefault+"/configmaps/a", "", 200, "")
	p.does("bob", "GET", inDefault+"/configmaps/a?resourceVersionMatch=Exact&resourceVersion="+first, "", 200, "")
}

// A resource with an interval has the last state of each interval, and every state of five minutes.
func TestHistoryIntervals(t *testing.T) {
	hour := func(group, resource string) map[schema.GroupResource]time.Duration {
		return map[schema.GroupResource]time.Duration{{Group: group, Resource: resource}: time.Hour}
	}
	for message, o := range map[string]Remembering{
		"--history-interval needs --history":                               {Intervals: hour("", "events")},
		`Invalid value: "pots": no built-in resource has this name`:        {On: true, Intervals: hour("", "pots")},
		`Invalid value: "lease.coordination.k8s.io": no built-in resource`: {On: true, Intervals: hour("coordination.k8s.io", "lease")},
		"its objects are those of another resource with the interval": {On: true, Intervals: map[schema.GroupResource]time.Duration{
			{Resource: "events"}: time.Hour, {Group: "events.k8s.io", Resource: "events"}: time.Minute,
		}},
		`Invalid value: "roles.rbac.authorization.k8s.io": all states of roles`: {On: true, Intervals: hour("rbac.authorization.k8s.io", "roles")},
	} {
		if _, err := Start(t.Context(), Options{Dir: t.TempDir(), History: o}); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%v, want %s", err, message)
		}
	}
	every := hour("", "configmaps")
	every[schema.GroupResource{Group: "example.com", Resource: "gadgets"}] = time.Hour
	o := Options{Dir: t.TempDir(), History: Remembering{On: true, Intervals: every, recent: time.Millisecond}}
	p := startPeople(t, o)
	defer stop(t, p.app)
	p.does("root", "POST", gadgets, gadgetsOf(`{name: v1, served: true, storage: true, `+fieldsOf("a")+`}`), 201, "")
	const steps = 20
	newest := int64(0)
	for _, kind := range []string{"configmaps", "gadgets", "secrets"} {
		at, body := collection(kind, "default"), `{metadata: {name: x}}`
		if kind == "gadgets" {
			body = `{apiVersion: example.com/v1, kind: Gadget, metadata: {name: x}}`
		}
		p.does("root", "POST", at, body, 201, "")
		for i := range steps {
			answer := p.does("root", asMerge, at+"/x", fmt.Sprintf(`{metadata: {labels: {step: "%d"}}}`, i), 200, "")
			newest, _ = strconv.ParseInt(revisionOf(t, answer), 10, 64)
		}
	}
	p.moved(newest) // the states are no longer recent
	for _, kind := range []string{"configmaps", "gadgets", "secrets"} {
		newest, _ = strconv.ParseInt(revisionOf(t, p.does("root", asMerge, collection(kind, "default")+"/x", `{metadata: {labels: {last: "19"}}}`, 200, "")), 10, 64)
	}
	p.moved(newest)
	for kind, most := range map[string]int{"configmaps": 4, "gadgets": 4, "secrets": steps + 2} { // an hour may end meanwhile
		answer := p.does("root", "GET", collection(kind, "default")+"/x?history=true", "", 200, "")
		if got := changesOf(t, answer); len(got) > most || !strings.HasPrefix(got[0], "ADDED") || !strings.Contains(answer, `"last":"19"`) || kind == "secrets" && len(got) < most {
			t.Errorf("%s: changes %q", kind, got)
		}
	}
}

// A history needs a store in a data directory.
func TestHistoryNeedsADirectory(t *testing.T) {
	on := Remembering{On: true}
	for want, o := range map[string]Options{
		"set Options.Dir":          {},
		"leave out --in-memory":    {Dir: t.TempDir(), InMemory: true},
		"leave out --etcd-servers": {Dir: t.TempDir(), Etcd: Etcd{Servers: []string{"http://127.0.0.1:1"}}},
	} {
		o.History = on
		if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
