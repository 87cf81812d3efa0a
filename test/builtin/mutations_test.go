package builtin

import (
	"flag"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Upstream's code logs oddities of its input.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // with many short-lived objects, a fifth less time
	os.Exit(m.Run())
}

var (
	kindsFlag     = flag.String("kinds", "", "comma-separated plurals of the kinds to compare; empty for all")
	mutationsFlag = flag.Int("mutations", -1, "single mutations of a kind of ordinary size; 0 for all (default 300, 100 with -short, 10,000 with -kinds)")
	pairsFlag     = flag.Int("pairs", -1, "pairs of mutations of one struct (default 30, 10 with -short, 2,000 with -kinds)")
	storedFlag    = flag.Int("stored", -1, "updates of objects that are stored with a mutation (default 15, 5 with -short, 1,000 with -kinds)")
	seedFlag      = flag.Uint64("seed", 1, "decides which mutations are taken")
	reportFlag    = flag.String("report", "", "`folder` for a report of each kind; differences are then no failure")
)

// chosen returns the kinds of -kinds that we serve, and the IDs of those that we do not.
func chosen(t *testing.T, s *Server) (kinds []*Kind, missing []string) {
	t.Helper()
	var wanted []string
	if *kindsFlag != "" {
		wanted = strings.Split(*kindsFlag, ",")
	}
	for _, k := range Kinds() {
		switch {
		case wanted != nil && !slices.Contains(wanted, k.ID()):
		case !s.Serves(k, ""):
			missing = append(missing, k.ID())
		default:
			kinds = append(kinds, k)
		}
		wanted = slices.DeleteFunc(wanted, func(w string) bool { return w == k.ID() })
	}
	if len(wanted) > 0 {
		t.Fatalf("no kinds %v", wanted)
	}
	return kinds, missing
}

func readCorpus(t *testing.T, below ...string) Corpus {
	t.Helper()
	corpus, err := ReadCorpus(Kinds(), below...)
	if err != nil {
		t.Fatal(err)
	}
	return corpus
}

func readChanges(t *testing.T) []Changes {
	t.Helper()
	changes, err := ReadChanges()
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, k := range Kinds() {
		ids[k.ID()] = true
	}
	for _, c := range changes {
		if id, _, _ := strings.Cut(c.Of, " "); !ids[id] {
			t.Fatalf("changes: no kind %s", c.Of)
		}
	}
	return changes
}

// TestCorpus: every kind has objects, which upstream accepts, with their status.
func TestCorpus(t *testing.T) {
	corpus := readCorpus(t)
	for _, k := range Kinds() {
		if len(corpus[k.ID()]) == 0 {
			t.Errorf("%s has no object in the corpus", k.ID())
		}
		for _, o := range corpus[k.ID()] {
			t.Run(k.ID()+"/"+nameOf(o), func(t *testing.T) { k.seed(t, o) })
		}
	}
}

// usual returns the plan without flags of this package.
func usual() Plan {
	if testing.Short() {
		return Plan{N: 100, Pairs: 10, Stored: 5, Seed: 1}
	}
	return Plan{N: 300, Pairs: 30, Stored: 15, Seed: 1}
}

// plan returns the plan from the flags.
func plan() Plan {
	p := usual()
	p.Seed = *seedFlag
	if *kindsFlag != "" {
		p.N, p.Pairs, p.Stored = 10_000, 2_000, 1_000
	}
	if *mutationsFlag >= 0 {
		p.N = *mutationsFlag
	}
	if *pairsFlag >= 0 {
		p.Pairs = *pairsFlag
	}
	if *storedFlag >= 0 {
		p.Stored = *storedFlag
	}
	return p
}

// TestReach runs all kinds on upstream alone. With -coverpkg, it shows the code of upstream that the
// cases reach (make builtin-reach).
func TestReach(t *testing.T) {
	if testing.CoverMode() == "" {
		t.Skip("coverage is off")
	}
	corpus, changes := readCorpus(t), readChanges(t)
	var sets []Set
	for _, k := range Kinds() {
		if *kindsFlag == "" || slices.Contains(strings.Split(*kindsFlag, ","), k.ID()) {
			sets = append(sets, Sets(t, nil, k, corpus[k.ID()], changes)...)
		}
	}
	cases := 0
	plan().Cases(sets, func(set *Set, mutations []Mutation, c Case) {
		cases++
		if o := Upstream(c); strings.HasPrefix(o.Message, "panic") {
			t.Logf("%s %s %v: upstream: %s", set.Kind.ID(), set.Operation, mutations, shorten(o.Message, 200))
		}
	})
	t.Logf("%d cases", cases)
}

// TestMutations compares our outcome for mutated objects of the corpus with upstream's.
func TestMutations(t *testing.T) {
	s := NewServer(t, nil)
	kinds, missing := chosen(t, s)
	corpus, changes := readCorpus(t), readChanges(t)
	known, err := ReadKnown(false)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		t.Run(k.ID(), func(t *testing.T) {
			r, err := s.mutations(k, Sets(t, s, k, corpus[k.ID()], changes), known, plan())
			if err != nil {
				t.Fatal(err)
			}
			decide(t, r)
		})
	}
	if len(missing) > 0 {
		t.Logf("%d kinds are not served: %s", len(missing), strings.Join(missing, " "))
	}
	reportStale(t, known)
}

// mutations compares the cases of one kind.
func (s *Server) mutations(k *Kind, sets []Set, known []*Known, p Plan) (*Report, error) {
	fuzzed, err := FuzzedSets(sets, p.fuzzed(), *seedFlag)
	if err != nil {
		return nil, err
	}
	r := NewReport(k)
	compare := func(set *Set, mutations []Mutation, c Case) {
		ours, upstream := s.Do(c), Upstream(c)
		r.Add(set, mutations, c, upstream.Object != nil, Compare(c, ours, upstream))
	}
	p.Cases(sets, compare)
	for i := range fuzzed {
		fuzzed[i].run(nil, compare)
	}
	r.Explain(known)
	r.Shrink(func(c Case) []Difference { return Compare(c, s.Do(c), Upstream(c)) })
	return r, nil
}

// decide writes a report to a file with -report, and otherwise reports failures.
func decide(t *testing.T, r *Report) {
	t.Helper()
	t.Log(r.Line())
	if *reportFlag != "" {
		writeReport(t, r)
		return
	}
	for _, c := range r.sorted() {
		if c.Known == "" {
			t.Errorf("%s\n%d cases, of %s\nupstream %s\nours     %s", c.Name, c.Count, c.Mutations, c.Example.Upstream, c.Example.Ours)
		}
	}
}

// reportStale fails for known classes that should have occurred and did not.
func reportStale(t *testing.T, known []*Known) {
	t.Helper()
	all := plan().N == 0
	if *kindsFlag != "" || !all && plan() != usual() {
		return // other cases may have it
	}
	for _, k := range known {
		if !k.met && !k.Perhaps && (all || !k.Long) {
			t.Errorf("known.txt: nothing is of the class any more: %s", k.Line)
		}
	}
}

func writeReport(t *testing.T, r *Report) {
	t.Helper()
	if err := os.MkdirAll(*reportFlag, 0o755); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	r.Write(&b)
	name := filepath.Join(*reportFlag, r.Kind.ID()+".txt")
	if r.ByOperation["table"] > 0 {
		name = filepath.Join(*reportFlag, r.Kind.ID()+".table.txt")
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("written: " + name)
}
