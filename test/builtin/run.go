package builtin

import (
	"cmp"
	"fmt"
	"hash/crc64"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A Set has the cases of one object of the corpus and one operation.
type Set struct {
	Kind        *Kind
	Operation   string // "create", "update", "update status"...
	subresource string
	old         Object // nil for a create
	from        Object // the object to mutate
	mutations   []Mutation
	fixed       [][]Mutation // from Changes
}

// A Plan has the numbers of cases. They are for a kind with 10,000 mutations; a kind with four times
// as many gets twice as many cases.
type Plan struct {
	N      int // single mutations; 0 for all
	Pairs  int // pairs of mutations of one struct
	Stored int // updates of objects that were mutated in the store, and may be invalid
	Seed   uint64
}

// fuzzed is the number of fuzzed objects of a kind, for each operation.
func (p Plan) fuzzed() int {
	if p.N == 0 {
		return 1000
	}
	return p.N / 20
}

// Sets returns the sets of a kind. Without a server, the sets have everything that upstream has.
func Sets(t testing.TB, s *Server, k *Kind, corpus []Object, changes []Changes) []Set {
	t.Helper()
	var out []Set
	for i, o := range corpus {
		depth := 3
		if i > 0 {
			depth = 1 // the first object mostly lacks the same fields
		}
		out = append(out, Set{Kind: k, Operation: "create", from: o, mutations: thin(k.Mutations(o, depth), reaches(""))})
		old := k.old(t, o, i)
		for _, sub := range k.updates() {
			if s != nil && !s.Serves(k, sub) {
				continue
			}
			body, from := Case{Kind: k, Subresource: sub}.body(), old
			if body != k {
				var err error
				if from, err = k.scale(t.Context(), old); err != nil {
					t.Fatal(err)
				}
			}
			mutations := slices.DeleteFunc(thin(body.Mutations(from, depth), reaches(sub)), namesAnother)
			out = append(out, Set{Kind: k, Operation: strings.TrimSpace("update " + sub), subresource: sub, old: old, from: from, mutations: mutations})
		}
	}
	return append(out, k.changed(t, s, corpus, changes)...)
}

// old returns the i-th object of the corpus as stored before an update.
func (k *Kind) old(t testing.TB, o Object, i int) Object {
	t.Helper()
	out := k.seed(t, o)
	m := maps.Clone(out["metadata"].(Object))
	m["uid"], m["creationTimestamp"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "2026-01-02T03:04:05Z"
	m["resourceVersion"] = oldRevision
	out["metadata"] = m
	return out
}

// oldRevision is the resourceVersion of objects before an update. Server.Do replaces it by the
// revision in its store.
const oldRevision = "1"

// updates returns the subresources for updates; "" is the object itself.
func (k *Kind) updates() []string {
	out := slices.Concat([]string{""}, slices.Collect(maps.Keys(k.Subresources)), slices.Collect(maps.Keys(k.storages)))
	slices.Sort(out)
	return slices.Compact(out)
}

// namesAnother reports whether an update with the mutation would address another object.
func namesAnother(m Mutation) bool {
	return len(m.Path) == 2 && m.Path[0] == "metadata" && (m.Path[1] == "name" || m.Path[1] == "namespace")
}

// seed returns an object of the corpus as upstream stores it, with the status from the corpus.
func (k *Kind) seed(t testing.TB, o Object) Object {
	t.Helper()
	created := Upstream(Case{Kind: k, New: o})
	if created.Code != 201 {
		t.Fatalf("corpus: %s %s is not valid: %s", k.ID(), nameOf(o), answered(created))
	}
	if o["status"] == nil || k.Subresources["status"] == nil {
		return created.Object
	}
	full := maps.Clone(created.Object)
	full["status"] = o["status"]
	full["metadata"].(Object)["resourceVersion"] = "1"
	changed := Upstream(Case{Kind: k, Subresource: "status", Old: created.Object, New: full})
	if changed.Code != 200 {
		t.Fatalf("corpus: the status of %s %s is not valid: %s", k.ID(), nameOf(o), answered(changed))
	}
	return changed.Object
}

// Cases yields the cases of a plan.
func (p Plan) Cases(sets []Set, yield func(*Set, []Mutation, Case)) {
	for i := range sets {
		for _, changes := range sets[i].fixed {
			sets[i].run(changes, yield)
		}
	}
	singles, pairs, stored := shares(sets, p.N), shares(sets, p.Pairs), shares(sets, p.Stored)
	for i := range sets {
		set := &sets[i]
		rng := rand.New(rand.NewPCG(p.Seed, crc64.Checksum([]byte(set.Kind.ID()+set.Operation+nameOf(set.from)), crc64.MakeTable(crc64.ISO))))
		set.run(nil, yield)
		for _, m := range pick(set.mutations, singles[i], rng) {
			set.run([]Mutation{m}, yield)
		}
		if p.Pairs+p.Stored == 0 || len(set.mutations) == 0 {
			continue
		}
		near := map[string][]Mutation{}
		for _, m := range set.mutations {
			near[m.parent()] = append(near[m.parent()], m)
		}
		random := func() (Mutation, []Mutation) {
			m := set.mutations[rng.IntN(len(set.mutations))]
			return m, near[m.parent()]
		}
		for range pairs[i] {
			a, others := random()
			set.run([]Mutation{a, others[rng.IntN(len(others))]}, yield)
		}
		for range stored[i] {
			m, others := random()
			set.runStored(m, []Mutation{others[rng.IntN(len(others))]}, yield)
		}
	}
}

// runStored makes two updates of an object with a mutation in the store: one of another field, and one
// with another mutation of the same struct. It finds the differences in ratcheting: errors that
// upstream does not report for unchanged fields.
func (set *Set) runStored(m Mutation, then []Mutation, yield func(*Set, []Mutation, Case)) {
	if set.old == nil || set.subresource == "scale" {
		return
	}
	changed := m.Apply(set.old)
	if changed == nil {
		return
	}
	other := *set
	switch out := Upstream(Case{set.Kind, set.subresource, set.old, changed}); {
	case out.Object == nil:
		other.old = set.Kind.normal(changed)
	case reflect.DeepEqual(out.Object, set.old):
		return // its feature is disabled, so it is not stored
	default:
		out.Object["metadata"].(Object)["resourceVersion"] = oldRevision
		other.old = out.Object
	}
	if other.old == nil {
		return
	}
	other.from = other.old
	m.Stored = true
	for _, next := range [][]Mutation{{touched}, then} {
		o := other.from
		for _, n := range next {
			if o = n.Apply(o); o == nil {
				return
			}
		}
		yield(&other, append([]Mutation{m}, next...), Case{set.Kind, set.subresource, other.old, o})
	}
}

// touched changes no validated field.
var touched = Mutation{Path: []any{"metadata", "labels"}, Value: Object{"touched": "x"}}

func (set *Set) run(mutations []Mutation, yield func(*Set, []Mutation, Case)) {
	o := set.from
	for _, m := range mutations {
		if o = m.Apply(o); o == nil {
			return // its path is gone after the other one
		}
	}
	yield(set, mutations, Case{set.Kind, set.subresource, set.old, o})
}

// shares divides the cases of a kind between its sets. It does not depend on other kinds, so a new
// kind does not change the cases of the others.
func shares(sets []Set, n int) []int {
	all, roots := map[*Kind]float64{}, map[*Kind]float64{}
	for _, s := range sets {
		all[s.Kind] += float64(len(s.mutations))
		roots[s.Kind] += math.Sqrt(float64(len(s.mutations)))
	}
	out := make([]int, len(sets))
	for i, s := range sets {
		ofKind := float64(n) * math.Sqrt(all[s.Kind]/10_000)
		out[i] = int(math.Ceil(ofKind * math.Sqrt(float64(len(s.mutations))) / roots[s.Kind]))
	}
	return out
}

// pick picks n of all mutations, or all if n is 0: first one of each path, then a second one of each.
func pick(all []Mutation, n int, rng *rand.Rand) []Mutation {
	if n == 0 || n >= len(all) {
		return all
	}
	type ranked struct {
		Mutation
		round int
		order uint64
	}
	round := map[string]int{}
	list := make([]ranked, len(all))
	for i, j := range rng.Perm(len(all)) {
		path := blank(showPath(all[j].Path))
		list[i] = ranked{all[j], round[path], rng.Uint64()}
		round[path]++
	}
	slices.SortFunc(list, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.round, b.round), cmp.Compare(a.order, b.order))
	})
	out := make([]Mutation, n)
	for i := range out {
		out[i] = list[i].Mutation
	}
	return out
}
