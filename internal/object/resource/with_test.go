package resource

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// A Set from With equals that of NewSet with the same Definitions.
func TestWith(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	definition := func() *Definition {
		d := Definition{
			Group: fmt.Sprintf("g%d", random.IntN(4)), Plural: fmt.Sprintf("p%d", random.IntN(60)),
			GroupPriority: random.IntN(3),
		}
		for v := range random.IntN(3) {
			d.Versions = append(d.Versions, &Version{Name: fmt.Sprintf("v%d", 1+v), Served: random.IntN(3) > 0})
		}
		return New(d)
	}
	var all []*Definition
	s := NewSet(nil)
	for range 2000 {
		var out, in []*Definition
		for range random.IntN(3) {
			if len(all) > 0 {
				i := random.IntN(len(all))
				out = append(out, all[i])
				all = slices.Delete(all, i, i+1)
			}
		}
		for range random.IntN(3) {
			d := definition()
			in = append(in, d)
			if !slices.ContainsFunc(all, func(o *Definition) bool { return o.GroupResource() == d.GroupResource() }) {
				all = append(all, d)
			}
		}
		s = s.With(out, in)
		if got, want := describe(s), describe(NewSet(all)); got != want {
			t.Fatalf("With made\n%s\nNewSet makes\n%s", got, want)
		}
	}
}

func describe(s *Set) (text string) {
	all := map[string]bool{}
	for d := range s.All() {
		all[fmt.Sprintf("%s/%s@%p", d.Group, d.Plural, s.Lookup(d.Group, d.Plural))] = true
	}
	text = fmt.Sprintln(s.Len(), all)
	for _, g := range s.Groups() {
		text += fmt.Sprint(g.Name, g.Versions)
		for _, d := range g.Definitions {
			text += fmt.Sprintf(" %s@%p", d.Plural, d)
		}
		text += "\n"
	}
	return text
}

func BenchmarkWith(b *testing.B) {
	var all []*Definition
	for i := range 2000 {
		all = append(all, New(Definition{
			Group: fmt.Sprintf("g%d", i/12), Plural: fmt.Sprint(i), Versions: []*Version{{Name: "v1", Served: true, Storage: true}},
		}))
	}
	s := NewSet(all)
	b.ReportAllocs()
	for b.Loop() {
		s.With(all[:1], all[:1])
	}
}
