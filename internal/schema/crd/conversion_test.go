package crd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/registry/convert"
	"github.com/anykind/anykind/internal/schema/crd"
	"github.com/anykind/anykind/internal/schema/crd/compile"
	"github.com/anykind/anykind/internal/store/memkv"
)

// scribe is a webhook that writes a given text into spec.note of v2.
type scribe struct {
	note  atomic.Pointer[string]
	calls atomic.Int64
}

func (s *scribe) write(note string) { s.note.Store(&note) }

func (s *scribe) Post(_ context.Context, _ *webhook.Config, call webhook.Call) (webhook.Reply, error) {
	s.calls.Add(1)
	var in struct {
		Request struct {
			UID               string
			DesiredAPIVersion string
			Objects           []map[string]any
		}
	}
	if err := json.Unmarshal(call.Body, &in); err != nil {
		return webhook.Reply{}, err
	}
	for _, o := range in.Request.Objects {
		o["apiVersion"] = in.Request.DesiredAPIVersion
		if strings.HasSuffix(in.Request.DesiredAPIVersion, "/v2") {
			o["spec"] = map[string]any{"note": *s.note.Load()}
		}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
		"response": map[string]any{"uid": in.Request.UID, "convertedObjects": in.Request.Objects, "result": map[string]any{"status": "Success"}},
	})
	return webhook.Reply{Body: body, Peer: "scribe"}, err
}

const notes = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {plural: notes, kind: Note}
  conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {url: "https://example.com/convert"}}}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {note: {type: string}}}}}}
  - name: v2
    served: true
    storage: false
    selectableFields: [{jsonPath: .spec.note}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {note: {type: string}, title: {type: string}}}}}}
`

func noteOf(t *testing.T, tree object.Tree) string {
	spec, _ := tree["spec"].(object.Tree)
	note, _ := spec["note"].(string)
	return note
}

// Conversions are cached for a minute at most, for every kind of request, and no write is based on an
// outdated one.
func TestConversionsAreShownForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &scribe{}
		hook.write("old")
		s := startWith(t, memkv.New(memkv.Options{}), crd.Options{Conversion: compile.Conversion{Poster: hook}})
		defer s.stop()
		s.define(notes)
		v1 := s.target("example.com", "notes", "", "")
		const n = 300 // enough for an index of a field
		for i := range n {
			if _, err := s.try(v1, fmt.Sprintf(`{apiVersion: example.com/v1, kind: Note, metadata: {name: n%03d, finalizers: [example.com/f]}, spec: {note: stored}}`, i)); err != nil {
				t.Fatal(err)
			}
		}
		v2 := v1
		v2.Version = v1.Definition.Version("v2")
		at := func(name string) registry.Target { one := v2; one.Name = name; return one }
		s.fresh()
		get := func(name string) string {
			t.Helper()
			o, err := s.objects.Get(s.ctx(), at(name), "")
			if err != nil {
				t.Fatal(err)
			}
			shown, err := s.objects.View(s.ctx(), v2.Definition, v2.Version, o)
			if err != nil {
				t.Fatal(err)
			}
			return noteOf(t, tree(t, string(shown.JSON)))
		}
		selected := func(note string) int {
			t.Helper()
			selection, err := registry.Select(v2.Definition, v2.Version, "", "spec.note="+note)
			if err != nil {
				t.Fatal(err)
			}
			l, err := s.objects.List(s.ctx(), v2, registry.ListOptions{Selection: selection})
			if err != nil {
				t.Fatal(err)
			}
			return l.Items.Len()
		}
		expect := func(what string, got, want any) {
			t.Helper()
			if got != want {
				t.Errorf("%s: %v, want %v", what, got, want)
			}
		}

		expect("at first", get("n000"), "old")
		expect("of a list by the old value", selected("old"), n)
		hook.write("new")
		calls := hook.calls.Load()
		time.Sleep(convert.KeepFor - 1)
		expect("before a minute is over", get("n000"), "old")
		expect("before a minute is over, of a list by the old value", selected("old"), n)
		expect("calls meanwhile", hook.calls.Load(), calls)

		// A write converts anew, and so does a deletion that writes.
		changed, err := s.objects.Modify(s.ctx(), at("n001"), func(old object.Tree) (object.Tree, error) {
			expect("what a write is made of", noteOf(t, old), "new")
			out := object.CloneTree(old)
			object.SetMetaString(out, "generateName", "x-")
			return out, nil
		}, registry.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		expect("what a write answers", noteOf(t, changed.Tree), "new")
		deletion, err := s.objects.Delete(s.ctx(), at("n002"), &metav1.DeleteOptions{}, registry.WriteOptions{})
		if err != nil {
			t.Fatal(err)
		}
		expect("what a deletion answers", noteOf(t, deletion.Object.Tree), "new")

		time.Sleep(time.Nanosecond)
		expect("after a minute", get("n000"), "new")
		expect("after a minute, of a list by the old value", selected("old"), 0)
		expect("after a minute, of a list by the new value", selected("new"), n)

		// A deletion of many objects takes few calls.
		calls = hook.calls.Load()
		hook.write("newest")
		time.Sleep(time.Nanosecond)
		l, err := s.objects.DeleteCollection(s.ctx(), v2, registry.ListOptions{}, &metav1.DeleteOptions{}, registry.WriteOptions{DryRun: true})
		if err != nil || l.Items.Len() != n {
			t.Fatal(l.Items.Len(), err)
		}
		// Each object is marked, which takes a conversion and its reverse.
		expect("calls for what is deleted together", hook.calls.Load()-calls, int64(2+2*n))
		for item := range l.Items.All() {
			shown, err := s.objects.View(s.ctx(), v2.Definition, v2.Version, item)
			if err != nil {
				t.Fatal(err)
			}
			expect("what is deleted together", noteOf(t, tree(t, string(shown.JSON))), "newest")
		}
	})
}
