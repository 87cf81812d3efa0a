package generate

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit/policy"

	"github.com/anykind/anykind/test/compare/wire"
)

// world has the custom resources and every built-in kind with a sample.
func world(t testing.TB) *World {
	t.Helper()
	definitions, err := Definitions()
	if err != nil {
		t.Fatal(err)
	}
	out, err := Custom(definitions)
	if err != nil {
		t.Fatal(err)
	}
	all, err := documents("samples")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, r := range out {
		seen[r.APIVersion()+r.Kind] = true
	}
	for _, o := range all {
		version, kind := o["apiVersion"].(string), o["kind"].(string)
		if seen[version+kind] {
			continue
		}
		seen[version+kind] = true
		group, name, found := strings.Cut(version, "/")
		if !found {
			group, name = "", version
		}
		r := &Resource{Group: group, Version: name, Kind: kind, Plural: strings.ToLower(kind) + "s", Namespaced: kind != "Namespace",
			Verbs: []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}}
		if r.Samples, err = samples(r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return &World{Resources: out}
}

// volume returns the number of sequences: n, or a third of it with -short.
func volume(n uint64) uint64 {
	if testing.Short() {
		return n / 3
	}
	return n
}

// The same seed always gives the same requests.
func TestSequencesAreOfTheirSeed(t *testing.T) {
	a, b := world(t), world(t)
	different := false
	for n := range volume(2000) {
		s := Sequence(a, All(), 7, n)
		if other := Sequence(b, All(), 7, n); !reflect.DeepEqual(s, other) {
			t.Fatalf("sequence %d is %v once, and %v the next time", n, s, other)
		}
		different = different || !reflect.DeepEqual(s, Sequence(a, All(), 8, n))
	}
	if !different {
		t.Error("another seed makes the same requests")
	}
}

// All kinds of requests occur, for every resource, with their labels.
func TestSequencesAreSound(t *testing.T) {
	w := world(t)
	for _, kind := range All() {
		t.Run(kind.Name, func(t *testing.T) {
			labels := map[string]bool{}
			for n := range volume(1500) {
				s := Sequence(w, []Kind{kind}, 1, n)
				if len(s.Steps) == 0 {
					t.Fatalf("sequence %d has no requests", n)
				}
				for i, step := range s.Steps {
					labels[step.Resource] = true
					if step.ID != i+1 || step.Kind == "" || step.Method == "" {
						t.Fatalf("sequence %d: request %d is not described: %+v", n, i, step)
					}
					if step.Method == "DELETE" && !strings.Contains(step.Path, wire.Scope) && !strings.Contains(step.Path, "/none") {
						t.Fatalf("sequence %d deletes what is not its own: %s", n, step)
					}
				}
			}
			for n := range volume(1500) {
				for _, step := range Sequence(w, []Kind{kind}, 2, n).Cleanup {
					if !strings.Contains(step.Path, wire.Scope) {
						t.Fatalf("sequence %d cleans up what is not its own: %s", n, step)
					}
				}
			}
			if kind.Name != "define" && kind.Name != "discovery" && len(labels) < 2 {
				t.Errorf("requests are only of %v", labels)
			}
		})
	}
}

// Objects are valid; a mutation changes them.
func TestMutate(t *testing.T) {
	w := world(t)
	changed := 0
	const times = 2000
	for n := range uint64(times) {
		g := newG(w, 1, n)
		r := g.resource(editable)
		o := g.object(r)
		before := encode(o)
		if !json.Valid(before) {
			t.Fatalf("%s", before)
		}
		g.mutate(o, r.Schema)
		if !bytes.Equal(before, encode(o)) {
			changed++
		}
	}
	if changed < times*8/10 {
		t.Errorf("%d of %d objects were changed", changed, times)
	}
}

func TestDifferenceIsAMergePatch(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{`{"a":1}`, `{"a":1}`, `{}`},
		{`{"a":1}`, `{"a":2,"b":3}`, `{"a":2,"b":3}`},
		{`{"a":1,"b":2}`, `{"a":1}`, `{"b":null}`},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"x":1}}`, `{"a":{"y":null}}`},
		{`{"a":[1]}`, `{"a":[1,2]}`, `{"a":[1,2]}`},
	} {
		var a, b map[string]any
		if err := json.Unmarshal([]byte(tt.a), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(tt.b), &b); err != nil {
			t.Fatal(err)
		}
		if got := string(encode(difference(a, b))); got != tt.want {
			t.Errorf("from %s to %s: %s, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}

// References in a schema are replaced by their targets, also recursive ones.
func TestResolve(t *testing.T) {
	all, err := parseDocument([]byte(`{"components":{"schemas":{
		"x.A":{"x-kubernetes-group-version-kind":[{"group":"g","version":"v","kind":"A"}],"type":"object","properties":{
			"b":{"allOf":[{"$ref":"#/components/schemas/x.B"}]},"n":{"type":"integer"}}},
		"x.B":{"type":"object","properties":{"a":{"$ref":"#/components/schemas/x.A"},"list":{"type":"array","items":{"$ref":"#/components/schemas/x.B"}}}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	a := all.kind("g", "v", "A")
	if a == nil || a.property("n").Type != "integer" || a.property("b").property("list").Items == nil || !a.property("b").property("a").Preserve {
		t.Errorf("resolved to %+v", a)
	}
	if all.kind("g", "v", "C") != nil {
		t.Error("found a kind that is not there")
	}
}

// Samples contain no YAML 1.1 boolean (y, n, on, off) by accident.
func TestSamplesSayWhatTheyMean(t *testing.T) {
	all, err := documents("samples")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		for _, s := range spots(o, nil, nil) {
			last, _ := s.path[len(s.path)-1].(string)
			if labels, ok := s.get().(map[string]any); ok && (last == "labels" || last == "annotations") {
				for name, value := range labels {
					if _, text := value.(string); !text {
						t.Errorf("%v %s: label %s is %v", o["kind"], pointer(s.path), name, value)
					}
				}
			}
			if last == "true" || last == "false" {
				t.Errorf("%v has a field %s", o["kind"], pointer(s.path))
			}
		}
	}
}

// Random audit policies are valid, have all levels, and depend on the seed alone.
func TestAuditPolicies(t *testing.T) {
	levels := map[audit.Level]int{}
	for n := range volume(600) {
		data, err := json.Marshal(AuditVocabulary([]string{"a", "b"}).Policy(rand.New(rand.NewPCG(1, n))))
		if err != nil {
			t.Fatal(err)
		}
		p, err := policy.LoadPolicyFromBytes(data)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		for _, r := range p.Rules {
			levels[r.Level]++
		}
		if again, _ := json.Marshal(AuditVocabulary([]string{"a", "b"}).Policy(rand.New(rand.NewPCG(1, n)))); !bytes.Equal(again, data) {
			t.Errorf("the policy %d becomes\n%s\nwas\n%s", n, again, data)
		}
	}
	if len(levels) != 4 {
		t.Errorf("the rules have the levels %v", levels)
	}
}
