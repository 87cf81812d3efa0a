package generate

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/anykind/anykind/test/compare/wire"
)

// A Kind is a kind of request, with its generator.
type Kind struct {
	Name   string
	Weight int
	Make   func(g *G)
}

// All returns the kinds of requests.
func All() []Kind {
	return []Kind{
		{"write", 20, write},
		{"patch", 20, patch},
		{"apply", 14, apply},
		{"read", 14, read},
		{"watch", 8, watch},
		{"delete", 8, remove},
		{"negotiate", 8, negotiate},
		{"path", 8, path},
		{"query", 5, query},
		{"header", 4, header},
		{"body", 10, body},
		{"define", 6, define},
		{"subresource", 8, subresource},
		{"discovery", 4, discovery},
		{"namespace", 3, namespace},
		{"program", 25, program},
	}
}

// Choose returns one of the kinds, by weight.
func Choose(r *rand.Rand, kinds []Kind) Kind {
	total := 0
	for _, k := range kinds {
		total += k.Weight
	}
	n := r.IntN(total)
	for _, k := range kinds {
		if n -= k.Weight; n < 0 {
			return k
		}
	}
	return kinds[0]
}

// Sequence returns the nth sequence of a seed.
func Sequence(w *World, kinds []Kind, seed, n uint64) wire.Sequence {
	g := newG(w, seed, n)
	kind := Choose(g.Rand, kinds)
	kind.Make(g)
	return wire.Sequence{Kind: kind.Name, Steps: g.steps, Cleanup: g.cleanup}
}

func newG(w *World, seed, n uint64) *G { return &G{Rand: rand.New(rand.NewPCG(seed, n)), World: w} }

// G generates one sequence.
type G struct {
	*rand.Rand
	*World

	steps      []wire.Step
	cleanup    []wire.Step
	namespaced bool // its namespace exists
	ending     bool // it may be deleted
}

var endsNamespace = regexp.MustCompile(`^/+api/v1/namespaces/+` + wire.Scope + `/*([?#]|$)`)

// one returns a random one of the values.
func one[T any](g *G, values ...T) T { return values[g.IntN(len(values))] }

// chance is true with the probability 1/n.
func (g *G) chance(n int) bool { return g.IntN(n) == 0 }

// add adds a step and returns its reference for later steps.
func (g *G) add(s wire.Step) int {
	if s.Method == "DELETE" && !g.ending && endsNamespace.MatchString(s.Path) {
		// On kube-apiserver its end depends on another program, and never comes.
		s.Method, s.Body = "GET", nil
	}
	s.ID = len(g.steps) + 1
	g.steps = append(g.steps, s)
	return s.ID
}

// resource returns a random resource that satisfies want.
func (g *G) resource(want func(*Resource) bool) *Resource {
	var custom, other []*Resource
	for _, r := range g.Resources {
		switch {
		case want != nil && !want(r) || r.Plural == "customresourcedefinitions":
		case r.Custom:
			custom = append(custom, r)
		default:
			other = append(other, r)
		}
	}
	if len(other) == 0 || len(custom) > 0 && g.chance(2) {
		return one(g, custom...)
	}
	return one(g, other...)
}

// room ensures a namespace for objects of a resource.
func (g *G) room(r *Resource) {
	if g.namespaced || !r.Namespaced {
		return
	}
	g.namespaced = true
	g.add(wire.Step{Kind: "namespace", Resource: "namespaces", Method: "POST", Path: "/api/v1/namespaces",
		Header: typed("application/json"), Body: []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"` + wire.Scope + `"}}`)})
}

func typed(mediaType string) []wire.Field {
	return []wire.Field{{Name: "Content-Type", Value: mediaType}}
}

// object returns a valid object, if there is one for the resource.
func (g *G) object(r *Resource) map[string]any {
	var o map[string]any
	if len(r.Samples) > 0 {
		o = clone(one(g, r.Samples...)).(map[string]any)
	} else {
		o, _ = g.value(r.Schema, 0).(map[string]any)
		if o == nil {
			o = map[string]any{}
		}
		o["apiVersion"], o["kind"] = r.APIVersion(), r.Kind
		o["metadata"] = map[string]any{}
	}
	m := at(o, "metadata")
	m["name"] = wire.Scope
	labels := at(m, "labels")
	labels["scope"] = wire.Scope
	return o
}

// at returns a nested object, and creates it if absent.
func at(o map[string]any, name string) map[string]any {
	m, ok := o[name].(map[string]any)
	if !ok {
		m = map[string]any{}
		o[name] = m
	}
	return m
}

func clone(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[name] = clone(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = clone(e)
		}
		return out
	}
	return v
}

// A raw is a number or text that is JSON already.
type raw string

// MarshalJSON returns the text itself.
func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func encode(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		// This raw text is not valid JSON.
		return []byte(fmt.Sprint(v))
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// namespaceOf returns the namespace of objects of a resource.
func namespaceOf(r *Resource) string {
	if r.Namespaced {
		return wire.Scope
	}
	return ""
}

// pathOf returns the path of the object of a sequence.
func pathOf(r *Resource, subresource ...string) string {
	return strings.Join(append([]string{r.Path(namespaceOf(r), wire.Scope)}, subresource...), "/")
}

// post adds a create of the object.
func (g *G) post(r *Resource, o map[string]any) int {
	g.room(r)
	if r.Plural == "services" {
		// Addresses and ports are scarce.
		g.cleanup = append(g.cleanup, wire.Step{Method: "DELETE", Path: r.Path(namespaceOf(r), "")})
	}
	return g.add(wire.Step{Kind: "post", Resource: r.Label(), Method: "POST", Path: r.Path(namespaceOf(r), ""),
		Header: typed("application/json"), Body: encode(o)})
}

// get adds a get of the object.
func (g *G) get(r *Resource) int {
	return g.add(wire.Step{Kind: "get", Resource: r.Label(), Method: "GET", Path: pathOf(r)})
}

// writeQuery returns the query of a write.
func (g *G) writeQuery() string {
	var q []string
	if g.chance(8) {
		q = append(q, one(g, "dryRun=All", "dryRun=All", "dryRun=", "dryRun=None", "dryRun=All&dryRun=All"))
	}
	if g.chance(4) {
		q = append(q, "fieldManager="+one(g, "one", "two", "kubectl-edit", "", "a%20b", strings.Repeat("m", 129), "%01"))
	}
	if g.chance(4) {
		q = append(q, "fieldValidation="+one(g, "Strict", "Warn", "Ignore", "Strict", "strict", "", "Bogus"))
	}
	if g.chance(20) {
		q = append(q, one(g, "pretty=true", "pretty=1", "unknown=x", "pretty"))
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + strings.Join(q, "&")
}

// editable reports whether objects of a resource can be created and changed, without changes by a
// controller: anykind runs a StorageVersionMigration, and kube-apiserver leaves it to another program.
func editable(r *Resource) bool {
	return creatable(r) && r.Can("update") && r.Plural != "storageversionmigrations"
}

func creatable(r *Resource) bool { return r.Can("create") }
