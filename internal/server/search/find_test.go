package search

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object"
)

func TestWords(t *testing.T) {
	for query, want := range map[string]string{
		"":                   "",
		" \t\n":              "",
		"Web":                "web",
		" two  words\n":      "two words",
		"ÄRGER straße":       "Ärger straße",
		"a\u00a0b":           "a b",
		"x\x00y":             "x y",
		"app=Web,tier=Front": "app=web,tier=front",
	} {
		if got := strings.Join(Words(query), " "); got != want {
			t.Errorf("%q: %q, want %q", query, got, want)
		}
	}
}

// always allows every kind and namespace.
func always(*Kind, string) bool { return true }

// names returns the names of all documents that are found, in order.
func names(x *Index, query string) string {
	var found []string
	x.Find(Words(query), always, func(d Document) bool {
		found = append(found, d.Name)
		return true
	})
	return strings.Join(found, " ")
}

// An object is one of a test, with JSON as it is stored.
type stored struct {
	kind            int
	namespace, name string
	data            string
}

func indexOf(t testing.TB, kinds []Kind, objects []stored) *Index {
	t.Helper()
	x := NewIndex()
	for _, k := range kinds {
		x.AddKind(&k)
	}
	for i, o := range objects {
		add(t, x, &o, int64(i+1))
	}
	x.Sorted()
	return x
}

// add adds a document.
func add(t testing.TB, x *Index, o *stored, revision int64) {
	t.Helper()
	e, err := object.Scan([]byte(o.data), revision)
	if err != nil {
		t.Fatal(err)
	}
	x.Texts(x.Add(o.kind, o.namespace, o.name, revision, e.Labels), e.JSON)
}

func kindsOfTest() []Kind {
	return []Kind{{Resource: "pods", Kind: "Pod"}, {Resource: "secrets", Kind: "Secret", Secret: true}, {Group: "example.com", Resource: "widgets", Kind: "Widget"}}
}

func TestFind(t *testing.T) {
	x := indexOf(t, kindsOfTest(), []stored{
		{0, "blue", "a-web", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a-web","uid":"uid-1"},"spec":{"x":"other"}}`},
		{0, "blue", "web", `{"metadata":{"name":"web","resourceVersion":"77"},"status":{"phase":"Running","ip":"10.0.0.1","n":8080,"on":true}}`},
		{0, "blue", "web-2", `{"metadata":{"name":"web-2","generation":77,"managedFields":[{"manager":"kubelet"}],"creationTimestamp":"2026-01-02T03:04:05Z"},"status":{"phase":"Pending"}}`},
		{0, "green", "labeled", `{"metadata":{"labels":{"app":"web","example.com/Tier":"Front"},"annotations":{"note":"short","kubectl.kubernetes.io/last-applied-configuration":"applied"},"name":"labeled"}}`},
		{0, "green", "long", `{"metadata":{"annotations":{"big":"` + strings.Repeat("x", maxText) + `annotated"}},"spec":{"text":"` + strings.Repeat("é", maxText/2-2) + `ends-é` + strings.Repeat("z", 300) + `beyond"}}`},
		{0, "green", "value", `{"metadata":{},"spec":{"list":[{"image":"Web:1"},{"image":"a\u0000b \"quoted\" ü"}]}}`},
		{1, "blue", "key", `{"data":{"password":"c2VjcmV0"},"stringData":{"a":"plain"},"metadata":{"annotations":{"copy":"c2VjcmV0"},"labels":{"app":"vault"},"name":"key"},"type":"Opaque"}`},
		{2, "", "Global:Web", `{"metadata":{},"spec":{"float":1.5e3,"neg":-7}}`},
	})
	for _, tt := range []struct{ query, want string }{
		{"web", "web web-2 a-web Global:Web labeled value"},
		{"WEB", "web web-2 a-web Global:Web labeled value"},
		{"web-2", "web-2"},
		{"web running", "web"},
		{"running pending", ""},
		{"blue web", "web web-2 a-web"},
		{"pod green", "labeled long value"},
		{"pods example.com/tier=front", "labeled"},
		{"app=web", "labeled"},
		{"note=short", "labeled"},
		{"widget", "Global:Web"},
		{"global:web", "Global:Web"},
		{"10.0.0.1", "web"},
		{"8080", "web"},
		{"-7", "Global:Web"},
		{"1.5e3", "Global:Web"},
		{"quoted", "value"},
		{"ü", "value"},
		{"ends", "long"},
		{"opaque", "key"},
		{"vault", "key"},
		// not searched
		{"uid-1", ""}, {"77", ""}, {"kubelet", ""}, {"2026", ""}, {"applied", ""}, {"annotated", ""}, {"beyond", ""}, {"true", ""},
		{"c2vjcmv0", ""}, {"plain", ""}, {"password", ""}, {"copy", ""}, {"v1", ""},
	} {
		if got := names(x, tt.query); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.query, got, tt.want)
		}
	}
}

// A kind in a namespace that the caller excludes is left out, and is asked for once.
func TestFindLeavesOut(t *testing.T) {
	x := indexOf(t, kindsOfTest(), []stored{
		{0, "blue", "web-1", `{"metadata":{}}`}, {0, "blue", "web-2", `{"metadata":{}}`}, {0, "green", "web-3", `{"metadata":{}}`}, {2, "blue", "web-4", `{"metadata":{}}`},
	})
	var asked, found []string
	x.Find([]string{"web"}, func(k *Kind, namespace string) bool {
		asked = append(asked, k.Resource+"/"+namespace)
		return namespace == "green" || k.Resource == "widgets"
	}, func(d Document) bool {
		found = append(found, d.Name)
		return true
	})
	if got := strings.Join(asked, " "); got != "pods/blue pods/green widgets/blue" {
		t.Error("asked for", got)
	}
	if got := strings.Join(found, " "); got != "web-3 web-4" {
		t.Error("found", got)
	}
}

// A history is a random sequence of writes to an Index, and the present objects.
type history struct {
	random   *rand.Rand
	kinds    []Kind
	index    *Index
	revision int64
	present  map[string]*state
}

type state struct {
	stored
	revision int64
}

// vocabulary has texts with common parts.
var vocabulary = []string{"web", "web-1", "WEB-2", "api", "a", "b", "running", "Run", "10.0.0.1", "10.0.1", "übung", "x y", "", "2026-01-01T00:00:00Z", "app", "\u0000", "blue", "pod"}

func (h *history) word() string { return vocabulary[h.random.IntN(len(vocabulary))] }

// object returns a random object as a tree.
func (h *history) object() map[string]any {
	tree := map[string]any{"apiVersion": "v1", "kind": "Pod"}
	metadata := map[string]any{"uid": "web", "generation": 10, "managedFields": []any{map[string]any{"manager": "web"}}}
	for _, field := range []string{"labels", "annotations"} {
		if h.random.IntN(2) == 0 {
			metadata[field] = map[string]any{h.word(): h.word(), lastApplied: "web"}
		}
	}
	if delete(metadataOf(metadata, "labels"), lastApplied); h.random.IntN(3) == 0 {
		metadata["ownerReferences"] = []any{map[string]any{"name": h.word(), "uid": "web"}}
	}
	tree["metadata"] = metadata
	for range h.random.IntN(4) {
		tree[[]string{"spec", "status", "data", "type"}[h.random.IntN(4)]] = h.value(3)
	}
	return tree
}

func metadataOf(metadata map[string]any, field string) map[string]any {
	m, _ := metadata[field].(map[string]any)
	return m
}

func (h *history) value(depth int) any {
	switch n := h.random.IntN(8); {
	case n == 0:
		return h.random.IntN(20) - 5
	case n == 1:
		return []any{nil, true, strings.Repeat("é", 99) + h.word() + h.word()}[h.random.IntN(3)]
	case n < 5 || depth == 0:
		return h.word()
	case n == 5:
		return []any{h.value(depth - 1), h.value(depth - 1)}
	default:
		return map[string]any{h.word() + "k": h.value(depth - 1), "name": h.value(depth - 1)}
	}
}

// write creates, changes or deletes an object.
func (h *history) write(t *testing.T) {
	t.Helper()
	o := stored{kind: h.random.IntN(len(h.kinds))}
	if o.kind != 2 {
		o.namespace = []string{"blue", "blue-2", "green"}[h.random.IntN(3)]
	}
	o.name = fmt.Sprintf("%s%d", []string{"web-", "api", "Role:a"}[h.random.IntN(3)], h.random.IntN(4))
	h.revision++
	key := fmt.Sprint(o.kind, o.namespace, "/", o.name)
	if h.random.IntN(4) == 0 {
		delete(h.present, key)
		return
	}
	data, err := json.Marshal(h.object())
	if err != nil {
		t.Fatal(err)
	}
	o.data = string(data)
	h.present[key] = &state{o, h.revision}
	add(t, h.index, &o, h.revision)
}

func (h *history) sorted() []*state {
	var all []*state
	for _, s := range h.present {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *state) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.namespace+"/"+a.name, b.namespace+"/"+b.name))
	})
	return all
}

// rebuild builds a new index of the present objects, in the order of results.
func (h *history) rebuild(t *testing.T) {
	t.Helper()
	h.index = NewIndex()
	for _, k := range h.kinds {
		h.index.AddKind(&k)
	}
	for _, s := range h.sorted() {
		add(t, h.index, &s.stored, s.revision)
	}
	h.index.Sorted()
}

// lower folds ASCII.
func lower(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}, strings.ReplaceAll(s, "\x00", " "))
}

// texts returns the labels and the other searched texts of an object. It knows the rules by the documentation alone.
func texts(s *state, secret bool) (labels, values []string) {
	var tree map[string]any
	d := json.NewDecoder(strings.NewReader(s.data))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		panic(err)
	}
	metadata := tree["metadata"].(map[string]any)
	var walked []any
	for key, value := range metadataOf(metadata, "labels") {
		labels = append(labels, key+"="+value.(string))
	}
	for key, value := range metadataOf(metadata, "annotations") {
		if !secret && key != lastApplied {
			values = append(values, key+"="+value.(string))
		}
	}
	if owners, ok := metadata["ownerReferences"].([]any); ok {
		walked = append(walked, owners[0].(map[string]any)["name"])
	}
	for key, value := range tree {
		if key != "metadata" && key != "kind" && key != "apiVersion" && (!secret || key == "type") {
			walked = append(walked, value)
		}
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		case json.Number:
			values = append(values, v.String())
		case string:
			for len(v) > maxText {
				r := []rune(v)
				v = string(r[:len(r)-1])
			}
			if v != "2026-01-01T00:00:00Z" {
				values = append(values, v)
			}
		}
	}
	for _, v := range walked {
		walk(v)
	}
	return labels, values
}

// scan is Find over all present objects.
func (h *history) scan(words []string) string {
	type found struct {
		*state
		rank, values int
	}
	var all []found
	for _, s := range h.sorted() {
		k := h.kinds[s.kind]
		labels, values := texts(s, k.Secret)
		labels = append(labels, s.namespace, k.Kind, k.Resource)
		f := found{state: s}
		has := func(all []string, word string) bool {
			return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(lower(s), word) })
		}
		missing := false
		for _, w := range words {
			switch name := lower(s.name); {
			case name == w:
				f.rank++
			case strings.HasPrefix(name, w):
				f.rank += 2
			case strings.Contains(name, w):
				f.rank += 3
			case has(labels, w):
				f.rank += 4
			case has(values, w):
				f.values++
			default:
				missing = true
			}
		}
		if !missing {
			all = append(all, f)
		}
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Or(cmp.Compare(a.values, b.values), cmp.Compare(a.rank, b.rank)) })
	var b strings.Builder
	for _, f := range all {
		fmt.Fprintf(&b, "%s %s/%s at %d\n", h.kinds[f.kind].Kind, f.namespace, f.name, f.revision)
	}
	return b.String()
}

// live is Find without the documents of earlier states.
func (h *history) live(words []string) string {
	var b strings.Builder
	h.index.Find(words, always, func(d Document) bool {
		for _, s := range h.present {
			if s.revision == d.Revision {
				fmt.Fprintf(&b, "%s %s/%s at %d\n", d.Kind.Kind, d.Namespace, d.Name, d.Revision)
			}
		}
		return true
	})
	return b.String()
}

// After every prefix of a random history, the index finds what a scan of all objects finds, in the same order.
func TestFindAsScan(t *testing.T) {
	for seed := range uint64(30) {
		h := history{random: rand.New(rand.NewPCG(seed, 1)), kinds: kindsOfTest(), present: map[string]*state{}}
		h.rebuild(t)
		for step := range 120 {
			if h.write(t); step%40 == 20 {
				h.rebuild(t)
			}
			query := ""
			most := 1 + step%7
			for range 1 + h.random.IntN(most) {
				if w := []rune(h.word()); len(w) > 0 {
					at := h.random.IntN(len(w))
					query += string(w[at:at+1+h.random.IntN(min(len(w)-at, max(1, 6-most)))]) + " "
				}
			}
			words := Words(query)
			if len(words) == 0 {
				continue
			}
			if got, want := h.live(words), h.scan(words); got != want {
				t.Fatalf("seed %d, step %d, %q:\n%swant\n%s", seed, step, words, got, want)
			}
		}
	}
}

func TestExcerpt(t *testing.T) {
	long := strings.Repeat("é", 200) + "needle" + strings.Repeat("😀", 100)
	for _, tt := range []struct{ text, word, want string }{
		{"web", "web", "[web]"},
		{"a Web", "web", "a [Web]"},
		{"😀é needle", "needle", "😀é [needle]"},
		{long, "needle", "…" + strings.Repeat("é", 30) + "[needle]" + strings.Repeat("😀", 34) + "…"},
		{strings.Repeat("x", 300) + "needle", "needle", "…" + strings.Repeat("x", 194) + "[needle]"},
		{"needle" + strings.Repeat("x", 300), "needle", "[needle]" + strings.Repeat("x", 194) + "…"},
	} {
		part, m := excerpt(tt.text, within(tt.text, tt.word), len(tt.word))
		got := ""
		n := 0
		for _, r := range part + "\x00" {
			if n == m.Start {
				got += "["
			}
			if n == m.End {
				got += "]"
			}
			if r != 0 {
				got += string(r)
			}
			n += object.UTF16Len(string(r))
		}
		if got != tt.want {
			t.Errorf("%s: %s", tt.word, got)
		}
	}
}
