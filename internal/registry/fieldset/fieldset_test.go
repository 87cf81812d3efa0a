package fieldset

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/anykind/anykind/internal/object"
)

// thing is a type with one field of each form.
func thing(t testing.TB) *Type {
	t.Helper()
	p, err := typed.NewParser(`types:
- name: thing
  map:
    fields:
    - {name: size, type: {scalar: numeric}}
    - {name: labels, type: {map: {elementType: {scalar: string}}}}
    - {name: args, type: {list: {elementType: {scalar: string}, elementRelationship: atomic}}}
    - {name: tags, type: {list: {elementType: {scalar: string}, elementRelationship: associative}}}
    - name: ports
      type: {list: {elementType: {namedType: port}, elementRelationship: associative, keys: [name, protocol]}}
    - {name: color, type: {map: {elementType: {scalar: numeric}, elementRelationship: atomic}}}
    - {name: any, type: {namedType: __untyped_deduced_}}
- name: port
  map:
    fields:
    - {name: name, type: {scalar: string}}
    - {name: protocol, type: {scalar: string}, default: TCP}
    - {name: port, type: {scalar: numeric}}
- name: __untyped_deduced_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_deduced_}, elementRelationship: separable}
- name: __untyped_atomic_
  scalar: untyped
  list: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
  map: {elementType: {namedType: __untyped_atomic_}, elementRelationship: atomic}
`)
	if err != nil {
		t.Fatal(err)
	}
	return TypeOf(&p.Schema, p.Type("thing").TypeRef)
}

func tree(t testing.TB, s string) object.Tree {
	t.Helper()
	out := object.Tree{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts([]byte(s), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t object.Tree) string { return string(object.AppendJSON(nil, t)) }

// Each case compares two objects and gives the removed, modified and added fields.
func TestCompare(t *testing.T) {
	for _, tt := range []struct{ name, old, now, removed, modified, added string }{
		{"a field", `{"size":1}`, `{"size":2}`, `{}`, `{"f:size":{}}`, `{}`},
		{"one number in two forms", `{"size":1}`, `{"size":1.0}`, `{}`, `{}`, `{}`},
		{"fields that are there and not", `{"size":1}`, `{"labels":{"a":"b"}}`, `{"f:size":{}}`, `{}`, `{"f:labels":{".":{},"f:a":{}}}`},
		{"inside a map", `{"labels":{"a":"b","c":"d"}}`, `{"labels":{"a":"x","e":"f"}}`, `{"f:labels":{"f:c":{}}}`, `{"f:labels":{"f:a":{}}}`, `{"f:labels":{"f:e":{}}}`},
		{"a map that is one value", `{"color":{"r":1}}`, `{"color":{"r":2,"g":1}}`, `{}`, `{"f:color":{}}`, `{}`},
		{"a list that is one value", `{"args":["a"]}`, `{"args":["a","b"]}`, `{}`, `{"f:args":{}}`, `{}`},
		{"a set", `{"tags":["a","b"]}`, `{"tags":["c","a"]}`, `{"f:tags":{"v:\"b\"":{}}}`, `{}`, `{"f:tags":{"v:\"c\"":{}}}`},
		{"an element by its keys, of which one has a default", `{"ports":[{"name":"a","port":1}]}`, `{"ports":[{"name":"a","port":2}]}`,
			`{}`, `{"f:ports":{"k:{\"name\":\"a\",\"protocol\":\"TCP\"}":{"f:port":{}}}}`, `{}`},
		{"another order is no change", `{"tags":["a","b"]}`, `{"tags":["b","a"]}`, `{}`, `{}`, `{}`},
		{"what is there twice is one value", `{"tags":["a"]}`, `{"tags":["a","a"]}`, `{"f:tags":{"v:\"a\"":{}}}`, `{}`, `{"f:tags":{"v:\"a\"":{}}}`},
		{"a value of another form is both", `{"any":1}`, `{"any":{"a":1}}`, `{}`, `{"f:any":{}}`, `{"f:any":{"f:a":{}}}`},
		{"null and empty", `{"labels":null}`, `{"labels":{}}`, `{}`, `{"f:labels":{}}`, `{}`},
	} {
		c := thing(t).Compare(tree(t, tt.old), tree(t, tt.now))
		if got, want := fmt.Sprint(text(c.Removed), text(c.Modified), text(c.Added)), fmt.Sprint(tt.removed, tt.modified, tt.added); got != want {
			t.Errorf("%s: %s, want %s", tt.name, got, want)
		}
	}
}

// Each case merges a configuration into an object; "" is a case for the library.
func TestMerge(t *testing.T) {
	for _, tt := range []struct{ name, old, wanted, want string }{
		{"a field", `{"size":1,"args":["a"]}`, `{"size":2}`, `{"args":["a"],"size":2}`},
		{"inside a map", `{"labels":{"a":"b","c":"d"}}`, `{"labels":{"a":"x"}}`, `{"labels":{"a":"x","c":"d"}}`},
		{"one value", `{"args":["a","b"],"color":{"r":1}}`, `{"args":["c"],"color":{"g":1}}`, `{"args":["c"],"color":{"g":1}}`},
		{"the order is the one that is wanted", `{"tags":["a","b","c"]}`, `{"tags":["c","a"]}`, `{"tags":["b","c","a"]}`},
		{"others stay between their neighbours", `{"tags":["a","x","b"]}`, `{"tags":["a","b"]}`, `{"tags":["a","x","b"]}`},
		{"elements by their keys", `{"ports":[{"name":"a","port":1},{"name":"b"}]}`, `{"ports":[{"name":"a","protocol":"TCP","port":2}]}`,
			`{"ports":[{"name":"a","port":2,"protocol":"TCP"},{"name":"b"}]}`},
		{"an element that is there twice", `{"tags":["a","a"]}`, `{"tags":["a"]}`, ``},
		{"another form", `{"any":1}`, `{"any":{}}`, ``},
	} {
		old, wanted := tree(t, tt.old), tree(t, tt.wanted)
		got, ok := thing(t).Merge(old, wanted)
		if !ok && tt.want != "" || ok && text(got) != tt.want {
			t.Errorf("%s: %s, %v, want %s", tt.name, text(got), ok, tt.want)
		}
		if text(old) != text(tree(t, tt.old)) || text(wanted) != text(tree(t, tt.wanted)) {
			t.Errorf("%s: it has changed what it merged", tt.name)
		}
	}
}

// Sets have the same unions and differences as in structured-merge-diff.
func TestSets(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var random func(depth int) Set
	random = func(depth int) Set {
		s := Set{}
		for _, key := range []string{"f:a", "f:b", `k:{"name":"a"}`, `v:1`} {
			if r.IntN(3) > 0 {
				continue
			}
			below := Set{}
			if depth > 0 {
				below = random(depth - 1)
			}
			if len(below) > 0 && r.IntN(2) == 0 {
				below[self] = Set{}
			}
			s[key] = below
		}
		return s
	}
	library := func(s Set) *fieldpath.Set {
		set := &fieldpath.Set{}
		if err := set.FromJSON(bytes.NewReader(object.AppendJSON(nil, s))); err != nil {
			t.Fatal(err)
		}
		return set
	}
	is := func(what string, a, b, got Set, want *fieldpath.Set) {
		t.Helper()
		if !Normal(got) || !library(got).Equals(want) {
			t.Errorf("%s of %s and %s: %s, want %s", what, text(a), text(b), text(got), want)
		}
	}
	for range 5000 {
		a, b := random(2), random(2)
		one, other := library(a), library(b)
		got := object.CloneTree(a)
		Subtract(got, b)
		is("difference", a, b, got, one.Difference(other))
		got = object.CloneTree(a)
		Unite(got, object.CloneTree(b))
		is("union", a, b, got, one.Union(other))
		if got, want := Intersect(a, b), !one.Intersection(other).Empty(); got != want {
			t.Errorf("%s and %s intersect: %v, want %v", text(a), text(b), got, want)
		}
		if got, want := Contains(a, b), other.Difference(one).Empty(); got != want {
			t.Errorf("%s contains %s: %v, want %v", text(a), text(b), got, want)
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	of := thing(b)
	old := tree(b, `{"size":1,"labels":{"a":"b"},"args":["x","y"],"tags":["a","b"],"ports":[{"name":"a","port":1},{"name":"b","port":2}]}`)
	now := object.CloneTree(old)
	now["size"] = int64(2)
	b.ReportAllocs()
	for b.Loop() {
		if c := of.Compare(old, now); len(c.Modified) != 1 {
			b.Fatal(text(c.Modified))
		}
	}
}
