package builtin

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// A Set is the cases that begin with one object of the corpus and are made in one way.
type Set struct {
	Kind        *Kind
	Operation   string // "create", "update", "update status"...
	subresource string
	old         Object // nil for a create
	from        Object // what is changed
	mutations   []Mutation
}

// A Plan says how many cases there are to be.
type Plan struct {
	N     int // single mutations, of all sets; 0 for all
	Pairs int // pairs of mutations of one struct, of all sets
	Seed  uint64
}

// Sets returns the sets of a kind. What updates change is put into the store of the server.
func Sets(t testing.TB, s *Server, k *Kind, corpus []Object) []Set {
	var out []Set
	for i, o := range corpus {
		out = append(out, Set{k, "create", "", nil, o, k.Mutations(o)})
		old := k.seed(t, o)
		m := maps.Clone(old["metadata"].(Object))
		m["uid"], m["creationTimestamp"] = fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "2026-01-02T03:04:05Z"
		old["metadata"] = m
		old = s.Store(t, k, old)
		subresources := append([]string{""}, slices.Sorted(maps.Keys(k.Subresources))...)
		for _, sub := range subresources {
			if !s.Serves(k, sub) {
				continue
			}
			name := "update"
			if sub != "" {
				name += " " + sub
			}
			mutations := slices.DeleteFunc(k.Mutations(old), func(m Mutation) bool {
				return len(m.Path) == 2 && m.Path[0] == "metadata" && (m.Path[1] == "name" || m.Path[1] == "namespace" || m.Path[1] == "generateName")
			})
			out = append(out, Set{k, name, sub, old, old, mutations})
		}
	}
	return out
}

// seed is an object of the corpus as upstream stores it, with the status that the
// corpus says.
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

// A Result is what came of one case.
type Result struct {
	Mutations      []Mutation
	Differences    []Difference
	Ours, Upstream Outcome
	Accepted       bool
}

// Run makes the cases of a plan and yields what came of each.
func Run(s *Server, sets []Set, p Plan, yield func(*Set, Result)) {
	singles, pairs := shares(sets, p.N), shares(sets, p.Pairs)
	for i := range sets {
		set := &sets[i]
		rng := rand.New(rand.NewPCG(p.Seed, uint64(i)))
		set.run(s, nil, yield)
		for _, m := range pick(set.mutations, singles[i], rng) {
			set.run(s, []Mutation{m}, yield)
		}
		if p.Pairs == 0 {
			continue
		}
		near := map[string][]Mutation{}
		for _, m := range set.mutations {
			near[m.parent()] = append(near[m.parent()], m)
		}
		for range pairs[i] {
			a := set.mutations[rng.IntN(len(set.mutations))]
			others := near[a.parent()]
			set.run(s, []Mutation{a, others[rng.IntN(len(others))]}, yield)
		}
	}
}

func (set *Set) run(s *Server, mutations []Mutation, yield func(*Set, Result)) {
	o := set.from
	for _, m := range mutations {
		if o = m.Apply(o); o == nil {
			return
		}
	}
	c := Case{set.Kind, set.subresource, set.old, o}
	ours, upstream := s.Do(c), Upstream(c)
	yield(set, Result{mutations, Compare(c, ours, upstream), ours, upstream, upstream.Object != nil})
}

// shares divides n cases between sets. A set of four times as many mutations gets twice
// as many.
func shares(sets []Set, n int) []int {
	out := make([]int, len(sets))
	var sum float64
	for _, s := range sets {
		sum += math.Sqrt(float64(len(s.mutations)))
	}
	for i, s := range sets {
		if n > 0 {
			out[i] = int(math.Ceil(float64(n) * math.Sqrt(float64(len(s.mutations))) / sum))
		}
	}
	return out
}

// pick takes n mutations of all, or all if n is 0: first one of each path, then another
// one of each.
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
