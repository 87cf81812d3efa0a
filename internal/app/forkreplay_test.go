package app

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/store/kv"
)

// replayed returns the fork with a name when its replay is at an end, or at a revision.
func (p *people) replayed(name string, until int64) server.Fork {
	p.Helper()
	var f server.Fork
	if !poll(p, func() bool {
		f = server.Fork{}
		if err := json.Unmarshal([]byte(p.does("root", "GET", "/forks/"+name, "", 200, "")), &f); err != nil || f.Replayed == nil {
			p.Fatalf("fork %s: %+v, %v", name, f, err)
		}
		return f.Replayed.Done || f.Replayed.Error != "" || until > 0 && f.Replayed.ResourceVersion >= until
	}) {
		p.Fatalf("the replay of %s does not end: %+v", name, f.Replayed)
	}
	return f
}

// objectsOf returns the objects of a list without their revisions.
func (p *people) objectsOf(path string) (all []string) {
	p.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(p.does("root", "GET", path, "", 200, "")), &list); err != nil {
		p.Fatal(err)
	}
	for _, o := range list.Items {
		delete(o["metadata"].(map[string]any), "resourceVersion")
		data, err := json.Marshal(o)
		if err != nil {
			p.Fatal(err)
		}
		all = append(all, string(data))
	}
	return all
}

// A replay repeats the changes of a server in a fork, in their order: a watch of the fork has the events that a watch of the server
// had. Changes of some users may be left out.
func TestReplay(t *testing.T) {
	p := startPeople(t, Options{Dir: t.TempDir(), History: Remembering{On: true, recent: time.Millisecond}})
	defer stop(t, p.app)
	p.grant(`{apiGroups: [""], resources: [configmaps], verbs: ["*"]}`)
	begin := revisionOf(t, p.does("root", "POST", configMaps, `{metadata: {name: a}, data: {k: one}}`, 201, ""))
	p.does("root", "POST", "/api/v1/namespaces", `{metadata: {name: new}}`, 201, "")
	p.does("root", "POST", gadgets, gadgetsOf(`{name: v1, served: true, storage: true, `+fieldsOf("a")+`}`), 201, "")
	p.does("root", "POST", collection("gadgets", "default"), `{apiVersion: example.com/v1, kind: Gadget, metadata: {name: g}, a: one}`, 201, "")
	p.does("root", asMerge, configMaps+"/a", `{data: {k: two}}`, 200, "")
	p.does("bob", asMerge, configMaps+"/a", `{data: {k: three, by: bob}}`, 200, "")
	p.does("root", asMerge, configMaps+"/a", `{data: {by: root}}`, 200, "")
	p.does("root", "DELETE", configMaps+"/a", "", 200, "")
	p.does("bob", "POST", configMaps, `{metadata: {name: b}}`, 201, "")
	p.does("root", asMerge, configMaps+"/b", `{data: {k: four}}`, 200, "")
	last, err := strconv.ParseInt(revisionOf(t, p.does("root", "POST", inDefault+"/secrets", `{metadata: {name: s}, stringData: {k: hush}}`, 201, "")), 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	replay := func(name, spec string) string {
		t.Helper()
		made := p.does("root", "POST", "/forks", fmt.Sprintf(`{name: %s, resourceVersion: "%s", replay: %s}`, name, begin, spec), 201, "")
		if !strings.Contains(made, `"replayed":{"done":false}`) {
			t.Errorf("the replay of %s does not wait for the first request: %s", name, made)
		}
		p.does("root", "GET", "/forks/"+name+"/version", "", 200, "")
		return "/forks/" + name
	}
	events := func(fork string) []string {
		t.Helper()
		_, answer := ask(p, p.client, "GET", p.app.URL()+fork+configMaps+"?watch=true&timeoutSeconds=1&resourceVersion="+begin, "root", "")
		var got []string
		for line := range strings.Lines(answer) {
			var e struct {
				Type   string
				Object struct {
					Metadata struct{ Name string }
					Data     map[string]string
				}
			}
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				t.Fatal(err)
			}
			if e.Object.Metadata.Name == "kube-root-ca.crt" { // of a controller
				continue
			}
			got = append(got, fmt.Sprint(e.Type, " ", e.Object.Metadata.Name, " ", e.Object.Data))
		}
		return got
	}
	all := replay("all", "{}")
	if f := p.replayed("all", 0); f.Replayed.Error != "" || f.Replayed.ResourceVersion < last || f.Replayed.Time.IsZero() {
		t.Errorf("the replay has come to %+v, want %d", f.Replayed, last)
	}
	for _, path := range []string{configMaps, collection("gadgets", "default"), inDefault + "/secrets", rbacPath + "/clusterroles"} {
		if got, want := p.objectsOf(all+path), p.objectsOf(path); !slices.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s in the fork:\n%s\nin the server:\n%s", path, got, want)
		}
	}
	if got, want := events(all), events(""); !slices.Equal(got, want) || len(got) != 6 {
		t.Errorf("a watch of the fork has %q, and one of the server %q", got, want)
	}

	some := replay("some", `{without: [bob]}`)
	p.replayed("some", 0)
	// b was created by bob.
	// Another fork has controllers: it removes the namespace later than this one would.
	p.does("root", "DELETE", some+"/api/v1/namespaces/new", "", 200, "")
	p.does("root", "POST", "/forks", `{name: other}`, 201, "")
	p.does("root", "DELETE", "/forks/other/api/v1/namespaces/new", "", 200, "")
	if !poll(t, func() bool {
		code, _ := ask(t, p.client, "GET", p.app.URL()+"/forks/other/api/v1/namespaces/new", "root", "")
		return code == 404
	}) {
		t.Fatal("the namespace is not removed in a fork with controllers")
	}
	p.does("root", "GET", some+"/api/v1/namespaces/new", "", 200, "")
	want := []string{"MODIFIED a map[k:two]", "MODIFIED a map[by:root k:two]", "DELETED a map[by:root k:two]"}
	if got := events(some); !slices.Equal(got, want) {
		t.Errorf("without bob, a watch has %q, want %q", got, want)
	}

	// A user needs the rights of the fork and those of now.
	p.does("bob", "GET", all+configMaps, "", 403, `configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default"`)
	p.does("root", "POST", rbacPath+"/clusterroles", `{metadata: {name: entering}, rules: [{nonResourceURLs: ["/forks/*"], verbs: [use]}]}`, 201, "")
	p.bind("", "ClusterRole", "entering", "entering")
	p.does("bob", "GET", all+configMaps, "", 200, "")
	p.does("root", "DELETE", rbacPath+"/namespaces/default/rolebindings/b", "", 200, "")
	p.does("bob", "GET", all+configMaps, "", 403, `configmaps is forbidden: User "bob" cannot list resource "configmaps" in API group "" in the namespace "default"`)

	// The second change is not due for a long time, and does not delay the end of the fork.
	slow := replay("slow", `{speed: 0.000001}`)
	p.does("root", "GET", slow+configMaps+"/a", "", 200, "")
	if f := p.replayed("slow", 1); f.Replayed.Done || f.Replayed.ResourceVersion >= last {
		t.Errorf("the slow replay has come to %+v", f.Replayed)
	}
	p.does("root", "DELETE", slow, "", 200, "")
	replay("fast", `{speed: 1000000}`)
	p.replayed("fast", 0)
	if got := p.objectsOf("/forks/fast" + configMaps); !slices.Equal(got, p.objectsOf(configMaps)) {
		t.Errorf("the fast replay has %s", got)
	}

	p.does("root", "POST", "/forks", `{name: x, replay: {speed: -1}}`, 400, "replay.speed: Invalid value: -1: must not be negative")
	if f := p.does("root", "GET", "/forks", "", 200, ""); !strings.Contains(f, `"replayed":{"resourceVersion":`) {
		t.Errorf("the list has no replay: %s", f)
	}
}

// A replay needs a history.
func TestReplayWithoutHistory(t *testing.T) {
	p := startPeople(t, Options{Dir: t.TempDir()})
	defer stop(t, p.app)
	p.does("root", "POST", "/forks", `{name: x, replay: {}}`, 400, "this server keeps no history: start it with --history=30d")
	p.does("root", "GET", "/forks/x", "", 404, "")
}

// An object that differs in the fork keeps its other fields. Changes that do not fit to it are left out.
func TestRepeated(t *testing.T) {
	for name, tt := range map[string]struct{ before, after, now, want string }{
		"created":                       {"", `{"a":1}`, "", `{"a":1}`},
		"created, but there":            {"", `{"a":1}`, `{"b":1}`, ""},
		"updated":                       {`{"a":1}`, `{"a":2}`, `{"a":1}`, `{"a":2}`},
		"updated, but missing":          {`{"a":1}`, `{"a":2}`, "", ""},
		"updated, and differs":          {`{"a":1}`, `{"a":2}`, `{"a":1,"own":true}`, `{"a":2,"own":true}`},
		"updated to the value in there": {`{"a":1}`, `{"a":2}`, `{"a":2}`, ""},
		"deleted":                       {`{"a":1}`, "", `{"a":1,"own":true}`, "nothing"},
		"deleted, but missing":          {`{"a":1}`, "", "", ""},
		"no object":                     {"one", "two", "one", "two"},
		"no object, and differs":        {"one", "two", "three", ""},
	} {
		bytes := func(s string) []byte {
			if s == "" {
				return nil
			}
			return []byte(s)
		}
		value, differs := repeated(&kv.Event{Prev: bytes(tt.before), Value: bytes(tt.after)}, bytes(tt.now))
		got := string(value)
		if differs && value == nil {
			got = "nothing"
		}
		if !differs {
			got = ""
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
