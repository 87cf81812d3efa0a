package builtin

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Upstream's code logs what it finds odd in the objects that it is asked about.
func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

var (
	kindsFlag  = flag.String("kinds", "", "plurals of the kinds to compare, with commas between them; all if empty")
	nFlag      = flag.Int("n", 20_000, "how many single mutations; 0 for all there are")
	pairsFlag  = flag.Int("pairs", 2_000, "how many pairs of mutations of one struct")
	seedFlag   = flag.Uint64("seed", 1, "decides which mutations are taken")
	reportFlag = flag.String("report", "", "a directory for a report of each kind; differences are no failure then")
)

// chosen are the kinds of -kinds that we serve, and the IDs of those that we do not.
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

func readCorpus(t *testing.T) Corpus {
	t.Helper()
	corpus, err := ReadCorpus(Kinds())
	if err != nil {
		t.Fatal(err)
	}
	return corpus
}

// TestCorpus: every kind has objects, which upstream takes, with their status.
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

// TestMutations compares what we do with an object that is a little different from one of
// the corpus with what upstream does.
func TestMutations(t *testing.T) {
	s := NewServer(t)
	kinds, missing := chosen(t, s)
	corpus := readCorpus(t)
	known, err := ReadKnown()
	if err != nil {
		t.Fatal(err)
	}
	var sets []Set
	for _, k := range kinds {
		sets = append(sets, Sets(t, s, k, corpus[k.ID()])...)
	}
	reports := map[*Kind]*Report{}
	for _, k := range kinds {
		reports[k] = NewReport(k)
	}
	Run(s, sets, Plan{N: *nFlag, Pairs: *pairsFlag, Seed: *seedFlag}, func(set *Set, r Result) { reports[set.Kind].Add(set, r) })
	for _, k := range kinds {
		r := reports[k]
		r.Explain(known)
		t.Log(r.Line())
		if *reportFlag != "" {
			writeReport(t, r)
			continue
		}
		for _, c := range r.sorted() {
			if c.Known == "" {
				t.Errorf("%s\n%d cases, of %s\nupstream %s\nours     %s", c.Name, c.Count, c.Mutations, c.Example.Upstream, c.Example.Ours)
			}
		}
	}
	if len(missing) > 0 {
		t.Logf("%d kinds are not served: %s", len(missing), strings.Join(missing, " "))
	}
	if *kindsFlag != "" || *reportFlag != "" || flag.Lookup("n").DefValue != flag.Lookup("n").Value.String() {
		return
	}
	for _, k := range known {
		if !k.met {
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
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Log("written: " + name)
}
