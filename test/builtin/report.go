package builtin

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// A Class is a set of similar differences of one kind, with the shortest example.
type Class struct {
	Name      string // as in known.txt: kind, operation, class
	Count     int
	Example   Difference
	Mutations string
	Case      Case   // of the example
	Fuzzed    bool   // so it is long, and Shrink shortens it
	Known     string // reason from known.txt, or ""
}

// A Report is the result of the cases of one kind.
type Report struct {
	Kind                   *Kind
	Cases, Accepted, Equal int
	ByOperation            map[string]int
	Classes                map[string]*Class
	started                time.Time
}

// NewReport returns an empty Report.
func NewReport(k *Kind) *Report {
	return &Report{Kind: k, ByOperation: map[string]int{}, Classes: map[string]*Class{}, started: time.Now()}
}

// Add adds one result.
func (r *Report) Add(set *Set, mutations []Mutation, c Case, accepted bool, differences []Difference) {
	r.Cases++
	r.ByOperation[set.Operation]++
	if accepted {
		r.Accepted++
	}
	if len(differences) == 0 {
		r.Equal++
		return
	}
	seen := map[string]bool{}
	for _, d := range differences {
		name := fmt.Sprintf("%s %s: %s", r.Kind.ID(), set.Operation, d.Class)
		class := r.Classes[name]
		if class == nil {
			class = &Class{Name: name}
			r.Classes[name] = class
		}
		if !seen[name] {
			class.Count++
		}
		seen[name] = true
		how := nameOf(set.from) + " as it is"
		if len(mutations) > 0 {
			parts := make([]string, len(mutations))
			for i, m := range mutations {
				parts[i] = m.String()
			}
			how = nameOf(set.from) + ": " + strings.Join(parts, "; ")
		}
		if class.Mutations == "" || len(how) < len(class.Mutations) {
			class.Mutations, class.Example, class.Case, class.Fuzzed = how, d, c, strings.HasPrefix(set.Operation, "fuzzed")
		}
	}
}

// shrinkable is the maximal number of fuzzed examples of a kind to shrink. Shrinking is slow, and more
// classes than that indicate a simple cause.
const shrinkable = 4

// Shrink replaces fuzzed examples by smaller ones of the same class.
func (r *Report) Shrink(compare func(Case) []Difference) {
	left := shrinkable
	for _, class := range r.sorted() {
		if !class.Fuzzed || class.Known != "" || left == 0 {
			continue
		}
		left--
		_, wanted, _ := strings.Cut(class.Name, ": ")
		var found Difference
		is := func(c Case) bool {
			i := slices.IndexFunc(compare(c), func(d Difference) bool { found = d; return d.Class == wanted })
			return i >= 0
		}
		small := Shrink(class.Case, is, 150)
		class.Case.New = small
		if is(class.Case) {
			class.Example = found
		}
		class.Mutations = "a fuzzed object, shrunk: " + show(set(set(small, []any{"metadata"}, removed{}), []any{"apiVersion"}, removed{}))
	}
}

// sorted returns the classes, those with the most cases first.
func (r *Report) sorted() []*Class {
	return slices.SortedFunc(maps.Values(r.Classes), func(a, b *Class) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Name, b.Name))
	})
}

// Line returns the report in one line, with its duration.
func (r *Report) Line() string {
	known := 0
	for _, c := range r.Classes {
		if c.Known != "" {
			known++
		}
	}
	return fmt.Sprintf("%-40s %7d cases %7d accepted %7d equal; classes of differences: %2d known %2d unknown; %s",
		r.Kind.ID(), r.Cases, r.Accepted, r.Equal, known, len(r.Classes)-known, time.Since(r.started).Round(time.Second/10))
}

// Write writes the report as text.
func (r *Report) Write(w io.Writer) {
	fmt.Fprintln(w, r.Line())
	for _, op := range slices.Sorted(maps.Keys(r.ByOperation)) {
		fmt.Fprintf(w, "  %-30s %d cases\n", op, r.ByOperation[op])
	}
	for i, c := range r.sorted() {
		fmt.Fprintf(w, "\n%d. %s\n   %d cases", i+1, c.Name, c.Count)
		if c.Known != "" {
			fmt.Fprintf(w, ", known: %s", c.Known)
		}
		fmt.Fprintf(w, "\n   of       %s\n", c.Mutations)
		fmt.Fprintf(w, "   upstream %s\n   ours     %s\n", cmp.Or(shorten(c.Example.Upstream, 600), "-"), cmp.Or(shorten(c.Example.Ours, 600), "-"))
	}
}
