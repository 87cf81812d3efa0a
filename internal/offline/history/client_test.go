package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/merge"
	"github.com/anykind/anykind/internal/offline/apiclient"
)

const (
	path  = "/api/v1/namespaces/default/configmaps"
	start = "2026-11-20T08:00:0%dZ"
)

// A fake is a server with answers by request, in the form "GET /path?query". It records writes.
type fake struct {
	answers map[string]string
	writes  []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	request := r.Method + " " + r.URL.RequestURI()
	w.Header().Set("Content-Type", "application/json")
	if r.Method != http.MethodGet {
		f.writes = append(f.writes, request+" "+string(body))
		fmt.Fprintf(w, "%s", body)
		return
	}
	answer, ok := f.answers[request]
	if !ok {
		answer = `{"kind":"Status","code":404,"message":"not found"}`
	}
	var status struct{ Code int }
	if json.Unmarshal([]byte(answer), &status) == nil && status.Code > 0 {
		w.WriteHeader(status.Code)
	}
	fmt.Fprint(w, answer)
}

// serve returns a client of a fake server.
func serve(t *testing.T, answers map[string]string) (Client, *fake) {
	t.Helper()
	f := &fake{answers: answers}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return Client{Server: apiclient.Server{Client: s.Client(), URL: s.URL}}, f
}

// configMaps returns the kind of a fake server, or one object.
func configMaps(name string) Object {
	k := &apiclient.Kind{Kind: "ConfigMap", Namespaced: true}
	k.Version, k.Resource = "v1", "configmaps"
	return Object{k, "default", name}
}

// settings returns a ConfigMap with a value, at a revision.
func settings(value string, revision int) string {
	return fmt.Sprintf(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"%d"},"data":{"k":%q}}`, revision, value)
}

// item returns a change at a revision; "" is no object.
func item(revision int, kind, user, before, after string) string {
	c := object.Tree{"revision": fmt.Sprint(revision), "time": fmt.Sprintf(start, revision), "type": kind, "user": user, "verb": "patch", "manager": "kubectl-edit"}
	for field, text := range map[string]string{"before": before, "object": after} {
		if text != "" {
			c[field] = json.RawMessage(text)
		}
	}
	data, _ := json.Marshal(c)
	return string(data)
}

func changeList(items ...string) string {
	return `{"kind":"ChangeList","apiVersion":"history.anykind.dev/v1","metadata":{"resourceVersion":"9"},"items":[` + strings.Join(items, ",") + `]}`
}

func three() string {
	return changeList(item(1, Added, "jane", "", settings("one", 1)), item(2, "MODIFIED", "joe", settings("one", 1), settings("two", 2)),
		item(3, "MODIFIED", "joe", settings("two", 2), settings("three", 3)))
}

func TestWrite(t *testing.T) {
	c, _ := serve(t, map[string]string{"GET " + path + "/a?history=true&limit=5": three()})
	list, err := c.Changes(t.Context(), configMaps("a"), 5, "")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Write(&out, list); err != nil {
		t.Fatal(err)
	}
	want := `REVISION  TIME                  USER                 VERB
1         2026-11-20T08:00:01Z  jane (kubectl-edit)  patch
2         2026-11-20T08:00:02Z  joe (kubectl-edit)   patch
      .data.k: "one" → "two"
3         2026-11-20T08:00:03Z  joe (kubectl-edit)   patch
      .data.k: "two" → "three"
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
	out.Reset()
	if err := WriteBlame(&out, Blame(list.Items)); err != nil {
		t.Fatal(err)
	}
	want = `1 (jane 2026-11-20T08:00:01Z) apiVersion: v1
1 (jane 2026-11-20T08:00:01Z) data:
3 (joe  2026-11-20T08:00:03Z)   k: three
1 (jane 2026-11-20T08:00:01Z) kind: ConfigMap
1 (jane 2026-11-20T08:00:01Z) metadata:
1 (jane 2026-11-20T08:00:01Z)   name: a
1 (jane 2026-11-20T08:00:01Z)   namespace: default
3 (joe  2026-11-20T08:00:03Z)   resourceVersion: "3"
1 (jane 2026-11-20T08:00:01Z)   uid: u
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// A change whose objects cannot be shown has the reason, and neither blame nor undo take it for an empty
// object.
func TestUnshown(t *testing.T) {
	failed := strings.Replace(item(2, "MODIFIED", "joe", "", ""), `"verb"`, `"error":"conversion failed","verb"`, 1)
	c, _ := serve(t, map[string]string{"GET " + path + "/a?history=true": changeList(item(1, Added, "jane", "", settings("one", 1)), failed)})
	list, err := c.Changes(t.Context(), configMaps("a"), 0, "")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Write(&out, list); err != nil || !strings.HasSuffix(out.String(), "      conversion failed\n") {
		t.Error(err, out.String())
	}
	if lines := Blame(list.Items); len(lines) != 9 {
		t.Error(lines)
	}
	if _, err := c.Undoes(t.Context(), configMaps("a"), "", false); err == nil || !strings.HasSuffix(err.Error(), "revision 2: conversion failed") {
		t.Error(err)
	}
}

// Servers without a history are recognized: this program by its message, and Kubernetes by an answer
// that is no ChangeList.
func TestNone(t *testing.T) {
	for name, answer := range map[string]string{
		"anykind":    `{"kind":"Status","code":400,"reason":"BadRequest","message":"this server keeps no history: start it with --history=30d"}`,
		"Kubernetes": settings("one", 1),
	} {
		c, _ := serve(t, map[string]string{"GET " + path + "/a?history=true": answer, "GET " + path + "/a?history=true&limit=1": answer})
		if _, err := c.Changes(t.Context(), configMaps("a"), 0, ""); !errors.Is(err, ErrNone) {
			t.Errorf("%s: changes: %v", name, err)
		}
		if _, err := c.Undoes(t.Context(), configMaps("a"), "", false); !errors.Is(err, ErrNone) {
			t.Errorf("%s: undo: %v", name, err)
		}
		if _, err := c.Between(t.Context(), []Object{configMaps("a")}, Moment{Revision: "1"}, Moment{}, false); !errors.Is(err, ErrNone) {
			t.Errorf("%s: diff: %v", name, err)
		}
		if _, err := c.Returns(t.Context(), configMaps("a"), "1"); !errors.Is(err, ErrNone) {
			t.Errorf("%s: return: %v", name, err)
		}
	}
}

func TestBetween(t *testing.T) {
	list := func(items ...string) string {
		return `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[` + strings.Join(items, ",") + `]}`
	}
	named := func(o, name string) string { return strings.Replace(o, `"name":"a"`, `"name":"`+name+`"`, 1) }
	c, _ := serve(t, map[string]string{
		"GET " + path + "?history=true&limit=1":                         changeList(),
		"GET " + path + "?resourceVersion=1&resourceVersionMatch=Exact": list(settings("one", 1), named(settings("x", 1), "gone"), named(settings("x", 1), "same")),
		"GET " + path + "?asOf=2026-11-20T08%3A00%3A03Z":                list(settings("three", 3), named(settings("x", 2), "new"), named(settings("x", 7), "same")),
	})
	to, err := ParseMoment("2026-11-20T08:00:03Z", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Between(t.Context(), []Object{configMaps("")}, Moment{Revision: "1"}, to, false)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := WriteChanged(&out, all); err != nil {
		t.Fatal(err)
	}
	want := "  configmaps/a in default\n      .data.k: \"one\" → \"three\"\n- configmaps/gone in default\n+ configmaps/new in default\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

// An undo is written with the revision of the object, after a dry run.
func TestUndoRequests(t *testing.T) {
	const query = "?fieldManager=anykind-undo"
	for _, tt := range []struct {
		name, revision, list, now string
		force                     bool
		plan                      string
		write                     string // the last request
	}{
		{"the last change", "", three(), settings("three", 3), false,
			"configmaps/a in default: update\n  undoes revision 3 of 2026-11-20T08:00:03Z: joe (kubectl-edit), patch\n      .data.k: \"three\" → \"two\"\n",
			"PUT " + path + "/a" + query + " " + `{"apiVersion":"v1","data":{"k":"two"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default","resourceVersion":"3","uid":"u"}}`},
		{"a conflict", "2", three(), settings("three", 3), false,
			"configmaps/a in default: conflicts\n  undoes revision 2 of 2026-11-20T08:00:02Z: joe (kubectl-edit), patch\n  conflict: .data.k: was \"one\", the change set \"two\", is \"three\"\n", ""},
		{"a conflict with force", "2", three(), settings("three", 3), true,
			"configmaps/a in default: update\n  undoes revision 2 of 2026-11-20T08:00:02Z: joe (kubectl-edit), patch\n  conflict: .data.k: was \"one\", the change set \"two\", is \"three\"\n      .data.k: \"three\" → \"one\"\n",
			"PUT " + path + "/a" + query + " " + `{"apiVersion":"v1","data":{"k":"one"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default","resourceVersion":"3","uid":"u"}}`},
		{"a created object", "", changeList(item(1, Added, "jane", "", settings("one", 1))), settings("one", 1), false,
			"configmaps/a in default: delete\n  undoes revision 1 of 2026-11-20T08:00:01Z: jane (kubectl-edit), patch\n",
			"DELETE " + path + `/a {"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"resourceVersion":"1","uid":"u"}}`},
		{"a deleted object", "", changeList(item(2, Deleted, "jane", strings.Replace(settings("one", 1), `"uid"`, `"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p","uid":"x"}],"uid"`, 1), "")), "", false,
			"configmaps/a in default: create\n  undoes revision 2 of 2026-11-20T08:00:02Z: jane (kubectl-edit), patch\n  without its owner, which is gone: Pod p with uid x\n",
			"POST " + path + query + ` {"apiVersion":"v1","data":{"k":"one"},"kind":"ConfigMap","metadata":{"name":"a","namespace":"default"}}`},
		{"undone already", "3", three(), settings("two", 4), false, "configmaps/a in default: nothing to undo\n  undoes revision 3 of 2026-11-20T08:00:03Z: joe (kubectl-edit), patch\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			answers := map[string]string{"GET " + path + "/a?history=true": tt.list, "GET /api": `{"items":[]}`, "GET /apis": `{"items":[]}`}
			if tt.now != "" {
				answers["GET "+path+"/a"] = tt.now
			}
			c, f := serve(t, answers)
			step, err := c.Undoes(t.Context(), configMaps("a"), tt.revision, tt.force)
			if err != nil {
				t.Fatal(err)
			}
			steps := []*Step{step}
			todo, err := c.Prepare(t.Context(), steps, tt.force)
			if conflicts := len(step.Conflicts) > 0 && !tt.force; conflicts != errors.Is(err, ErrConflicts) || todo != (tt.write != "") {
				t.Errorf("todo %v, %v", todo, err)
			}
			var out strings.Builder
			WritePlan(&out, steps)
			if diff := cmp.Diff(tt.plan, out.String()); diff != "" {
				t.Error(diff)
			}
			for _, w := range f.writes {
				if !strings.Contains(w, "dryRun") {
					t.Errorf("the plan writes: %s", w)
				}
			}
			if !todo {
				return
			}
			if err := c.Write(t.Context(), steps, func(*Step, string) {}); err != nil {
				t.Error(err)
			}
			if len(f.writes) != 2 {
				t.Fatal(f.writes)
			}
			if diff := cmp.Diff(tt.write, f.writes[1]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// afterChanges serves the changes of three since a time, and the object as it is now.
func afterChanges(t *testing.T, now string) (Client, time.Time) {
	t.Helper()
	since, err := ParseTime("2026-11-20T08:00:01.5Z", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c, _ := serve(t, map[string]string{
		"GET " + path + "?asOf=2026-11-20T08%3A00%3A01.5Z&limit=1": `{"kind":"ConfigMapList","metadata":{"resourceVersion":"1"}}`,
		"GET " + path + "?history=true&limit=1":                    changeList(),
		"GET " + path + "?history=true&since=1":                    three(),
		"GET " + path + "/a":                                       now,
	})
	return c, since
}

// All changes of a user are undone, the newest first, and only theirs.
func TestUndoesBy(t *testing.T) {
	c, since := afterChanges(t, settings("three", 3))
	steps, err := c.UndoesBy(t.Context(), "joe", since, []Object{configMaps("")}, false, false)
	if err != nil || len(steps) != 1 || len(steps[0].Changes) != 2 {
		t.Fatal(steps, err)
	}
	if got := steps[0].result["data"].(object.Tree)["k"]; got != "one" || len(steps[0].Conflicts) > 0 {
		t.Error(got, steps[0].Conflicts)
	}
	if steps, err = c.UndoesBy(t.Context(), "jane", since, []Object{configMaps("")}, false, false); err != nil || len(steps) > 0 {
		t.Error(steps, err)
	}
}

// Several changes of a field that another user changed later are one conflict: that of the newest one.
func TestUndoesByConflict(t *testing.T) {
	c, since := afterChanges(t, settings("four", 4))
	for _, force := range []bool{false, true} {
		steps, err := c.UndoesBy(t.Context(), "joe", since, []Object{configMaps("")}, false, force)
		if err != nil || len(steps) != 1 {
			t.Fatal(steps, err)
		}
		if diff := cmp.Diff([]merge.Conflict{{Path: ".data.k", Before: "two", After: "three", Now: "four"}}, steps[0].Conflicts); diff != "" {
			t.Errorf("force %v: %s", force, diff)
		}
	}
}

// The status is undone through its subresource, and by its revision only.
func TestUndoOfStatus(t *testing.T) {
	o := configMaps("a")
	o.HasStatus = true
	with := func(status string) string {
		return strings.Replace(settings("x", 2), `"data"`, `"status":{"s":"`+status+`"},"data"`, 1)
	}
	change := strings.Replace(item(2, "MODIFIED", "joe", with("old"), with("new")), `"verb"`, `"subresource":"status","verb"`, 1)
	c, f := serve(t, map[string]string{"GET " + path + "/a?history=true": changeList(change), "GET " + path + "/a": with("new")})
	if _, err := c.Undoes(t.Context(), o, "", false); err == nil {
		t.Error("a change of the status is the last one")
	}
	step, err := c.Undoes(t.Context(), o, "2", false)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(t.Context(), []*Step{step}, func(*Step, string) {}); err != nil {
		t.Fatal(err)
	}
	if w := f.writes[0]; !strings.HasPrefix(w, "PUT "+path+"/a/status?") || !strings.Contains(w, `"status":{"s":"old"}`) || !strings.Contains(w, `"resourceVersion":"2"`) {
		t.Error(w)
	}
}

const managed = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default","uid":"u","managedFields":[
	{"manager":"kubectl-edit","operation":"Update","time":"2026-11-20T08:00:02Z","fieldsV1":{"f:data":{"f:k":{}},"f:list":{"k:{\"name\":\"x\"}":{".":{},"f:name":{},"f:v":{}}}}},
	{"manager":"kubectl-create","operation":"Update","time":"2026-11-20T08:00:01Z","fieldsV1":{"f:data":{".":{},"f:k":{}}}}]},
	"data":{"k":"v"},"list":[{"name":"x","v":1}]}`

// Without a history, managedFields and Events tell the last write of each manager.
func TestManaged(t *testing.T) {
	c, _ := serve(t, map[string]string{
		"GET " + path + "/a": managed,
		"GET /api/v1/namespaces/default/events?fieldSelector=involvedObject.uid%3Du": `{"items":[{"reason":"Used","message":"by p","source":{"component":"kubelet"},"lastTimestamp":"2026-11-20T08:00:03Z","eventTime":null}]}`,
	})
	now, err := c.Present(t.Context(), configMaps("a"))
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := c.WriteManaged(t.Context(), &out, now, time.Time{}, 0); err != nil {
		t.Fatal(err)
	}
	lines, err := BlameManaged(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteBlame(&out, lines); err != nil {
		t.Fatal(err)
	}
	want := `TIME                  MANAGER         OPERATION
2026-11-20T08:00:01Z  kubectl-create  Update
    .data.k
2026-11-20T08:00:02Z  kubectl-edit    Update
    .data.k
    .list[name="x"].name
    .list[name="x"].v
2026-11-20T08:00:03Z  kubelet         Event Used
    by p
^ (                                    ) apiVersion: v1
- (kubectl-create 2026-11-20T08:00:01Z) data:
- (kubectl-edit   2026-11-20T08:00:02Z)   k: v
^ (                                   ) kind: ConfigMap
^ (                                   ) list:
- (kubectl-edit   2026-11-20T08:00:02Z) - name: x
- (kubectl-edit   2026-11-20T08:00:02Z)   v: 1
^ (                                   ) metadata:
^ (                                   )   name: a
^ (                                   )   namespace: default
^ (                                   )   uid: u
`
	want = strings.Replace(want, "^ (                                    ) api", "^ (                                   ) api", 1)
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2026, 11, 20, 8, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2h": "2026-11-20T06:00:00Z", "-90m": "2026-11-20T06:30:00Z", "7d": "2026-11-13T08:00:00Z", "2026-11-19": "2026-11-19T00:00:00Z",
		"2026-11-19T10:00:00.5+02:00": "2026-11-19T08:00:00.5Z", "1234": "revision 1234", "soon": "", "0": "2026-11-20T08:00:00Z", "--2h": "", "": "",
	} {
		m, err := ParseMoment(text, now)
		got := stamp(m.Time)
		switch {
		case err != nil:
			got = ""
		case m.Revision != "":
			got = "revision " + m.Revision
		}
		if got != want {
			t.Errorf("%q: %s, want %s (%v)", text, got, want, err)
		}
	}
}
