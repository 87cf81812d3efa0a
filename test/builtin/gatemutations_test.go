package builtin

import (
	_ "embed"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/test/builtin/corpus"
)

var (
	gatesFlag = flag.String("gates", "", "NAME=BOOL pairs: compare with these feature gates instead of those of gates.txt")
	scanFlag  = flag.Bool("scan", false, "print the kinds whose outcomes in Kubernetes depend on each feature gate")
)

// A line of gatesText has feature gates and the plurals of kinds whose outcomes depend on them.
//
//go:embed gates.txt
var gatesText string

// withGates sets gates on upstream's side until the end of the test, and returns them for ours.
func withGates(t *testing.T, text string) *gate.Set {
	t.Helper()
	if release, ok := strings.CutPrefix(text, "emulated="); ok {
		release, others, _ := strings.Cut(release, ",")
		return emulating(t, release, others)
	}
	var f gate.Flag
	if err := f.Set(text); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Gates(); err != nil {
		t.Fatal(err)
	}
	all := utilfeature.DefaultFeatureGate.(featuregate.MutableVersionedFeatureGate)
	upstream, ours := pairsOf(text), map[gate.Name]bool{}
	for name, on := range upstream {
		ours[gate.Name(name)] = on
		if why := gate.IdleReason(gate.Name(name)); why != "" && *gatesFlag == "" {
			t.Errorf("%s is in idle.txt: %s", name, why)
		}
	}
	t.Cleanup(func() {
		for name := range upstream {
			if err := all.ResetFeatureValueToDefault(featuregate.Feature(name)); err != nil {
				t.Error(err)
			}
		}
	})
	if err := all.SetFromMap(upstream); err != nil {
		t.Fatal(err)
	}
	return gate.With(ours)
}

// pairsOf parses NAME=BOOL pairs, separated by commas.
func pairsOf(text string) map[string]bool {
	out := map[string]bool{}
	for pair := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value == "true"
	}
	return out
}

// emulating gives upstream's side the gates of a release until the end of the test, with other values for some of them,
// and returns them for ours. Gates of idle.txt keep their defaults on both sides, if the release has them.
func emulating(t *testing.T, release, others string) *gate.Set {
	t.Helper()
	all := utilfeature.DefaultFeatureGate.(featuregate.MutableVersionedFeatureGate)
	turn := func(to *version.Version) {
		if err := all.SetEmulationVersion(to); err != nil {
			t.Fatal(err)
		}
	}
	before := all.EmulationVersion()
	turn(version.MustParseGeneric(release))
	given := pairsOf(others)
	var set []featuregate.Feature
	ours, err := gate.Of(release, given)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range set {
			if err := all.ResetFeatureValueToDefault(name); err != nil {
				t.Error(err)
			}
		}
		turn(before)
	})
	values := maps.Clone(given)
	for name := range all.GetAll() {
		if gate.IdleReason(gate.Name(name)) != "" {
			values[string(name)] = ours.On(gate.Name(name))
		}
	}
	for name, on := range values {
		if all.Enabled(featuregate.Feature(name)) == on {
			continue
		}
		if err := all.SetFromMap(map[string]bool{name: on}); err != nil {
			t.Logf("%s: %v", name, err)
			continue
		}
		set = append(set, featuregate.Feature(name))
	}
	return ours
}

// TestGateMutations is TestMutations with feature gates that do not have their defaults.
func TestGateMutations(t *testing.T) {
	corpus, changes := readCorpus(t, corpus.Gated), readChanges(t)
	known, err := ReadKnown(false)
	if err != nil {
		t.Fatal(err)
	}
	p := plan()
	if p == usual() {
		p.N, p.Pairs, p.Stored = p.N/5, p.Pairs/3, p.Stored/3
	}
	text := gatesText
	if *gatesFlag != "" {
		text = *gatesFlag + " " + strings.ReplaceAll(*kindsFlag, ",", " ")
	}
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		t.Run(fields[0], func(t *testing.T) {
			s := NewServer(t, withGates(t, fields[0]))
			for _, k := range Kinds() {
				if len(fields) > 1 && !slices.Contains(fields[1:], k.ID()) || !s.Serves(k, "") {
					continue
				}
				t.Run(k.ID(), func(t *testing.T) {
					valid := slices.DeleteFunc(slices.Clone(corpus[k.ID()]), func(o Object) bool { return Upstream(Case{Kind: k, New: o}).Code != 201 })
					of := slices.DeleteFunc(slices.Clone(changes), func(c Changes) bool {
						return !slices.ContainsFunc(valid, func(o Object) bool { return c.Of == k.ID()+" "+nameOf(o) })
					})
					r, err := s.mutations(k, Sets(t, s, k, valid, of), known, p)
					if err != nil {
						t.Fatal(err)
					}
					decide(t, r)
				})
			}
		})
	}
}

// TestScanGates prints the kinds whose outcomes in Kubernetes depend on a gate. A line is one of gates.txt.
func TestScanGates(t *testing.T) {
	if !*scanFlag {
		t.Skip("needs -scan")
	}
	corpus, changes := readCorpus(t, corpus.Gated), readChanges(t)
	all := utilfeature.DefaultFeatureGate.(featuregate.MutableVersionedFeatureGate)
	type one struct {
		Case
		usual Outcome
	}
	cases := map[string][]one{}
	for _, k := range Kinds() {
		plan().Cases(Sets(t, nil, k, corpus[k.ID()], changes), func(_ *Set, _ []Mutation, c Case) {
			cases[k.ID()] = append(cases[k.ID()], one{c, Upstream(c)})
		})
	}
	for _, name := range slices.Sorted(maps.Keys(all.GetAll())) {
		spec := all.GetAll()[name]
		if why := gate.IdleReason(gate.Name(name)); spec.LockToDefault || strings.HasPrefix(why, "a gate of ") || strings.HasPrefix(string(name), "All") {
			continue
		}
		if err := all.SetFromMap(map[string]bool{string(name): !spec.Default}); err != nil {
			t.Logf("# %s: %v", name, err)
			_ = all.SetFromMap(map[string]bool{string(name): spec.Default})
			continue
		}
		var found []string
		for _, k := range Kinds() {
			for _, c := range cases[k.ID()] {
				if differs := Compare(c.Case, c.usual, Upstream(c.Case)); len(differs) > 0 {
					found = append(found, k.ID())
					break
				}
			}
		}
		fmt.Printf("%s=%t %s\n", name, !spec.Default, strings.Join(found, " "))
		if err := all.SetFromMap(map[string]bool{string(name): spec.Default}); err != nil {
			t.Fatal(err)
		}
	}
}
