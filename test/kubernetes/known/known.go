// Package known has the list of tests that may fail, the table of results, and the verdict: where both
// disagree.
//
// The list must only shrink: a test that passes may not be on it.
package known

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// An Entry is a test that may fail.
type Entry struct {
	How    How
	Reason string
	Says   []string // if any, the failure has to contain one of them
}

// How is the way in which a test may fail.
type How string

// The ways.
const (
	Fail    How = "fail"    // with anykind
	Both    How = "both"    // with the published server, too: the environment lacks something
	Flaky   How = "flaky"   // sometimes, with the published server, too
	Skip    How = "skip"    // not run, as it would prevent others
	Outside How = "outside" // about internals of a server in its own process
)

// A List has the entries by test name.
type List map[string]Entry

// Read reads a list. A line is
//
//	fail|both|flaky|skip|outside TEST REASON...
//
// which may be followed by an indented line
//
//	says WORDS...
//
// Lines that are empty or begin with # are ignored.
func Read(path string) (List, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, last := List{}, ""
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case words[0] == "says" && last != "":
			e := list[last]
			e.Says = append(e.Says, strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "says")))
			list[last] = e
		case len(words) < 3 || !slices.Contains([]How{Fail, Both, Flaky, Skip, Outside}, How(words[0])):
			return nil, fmt.Errorf("%s:%d: want how it may fail, a test, and why", path, n)
		default:
			if _, twice := list[words[1]]; twice {
				return nil, fmt.Errorf("%s:%d: %s is there twice", path, n, words[1])
			}
			last = words[1]
			list[last] = Entry{How: How(words[0]), Reason: strings.Join(words[2:], " ")}
		}
	}
	return list, lines.Err()
}

// Names returns the tests that may fail in a way.
func (l List) Names(how How) []string {
	var names []string
	for name, e := range l {
		if e.How == how {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// A Result is the result of a test.
type Result struct {
	Name    string
	Passed  bool
	Skipped bool // by the test itself
	Seconds float64
	Said    string // output of a failure
}

// ok reports whether the test passed or skipped itself.
func (r Result) ok() bool { return r.Passed || r.Skipped }

// A Run has the results with one server, in order.
type Run []Result

func (r Run) find(name string) (Result, bool) {
	i := slices.IndexFunc(r, func(t Result) bool { return t.Name == name })
	if i < 0 {
		return Result{}, false
	}
	return r[i], true
}

// Passed counts the results.
func (r Run) Passed() (passed, failed, skipped int) {
	for _, t := range r {
		switch {
		case t.Passed:
			passed++
		case t.Skipped:
			skipped++
		default:
			failed++
		}
	}
	return passed, failed, skipped
}

// Verdict returns an error if the results with anykind and the list disagree. part means that only
// some tests ran.
func (l List) Verdict(ours Run, part bool) error {
	var wrong []string
	for _, t := range ours {
		e, listed := l[t.Name]
		knows := len(e.Says) == 0 || slices.ContainsFunc(e.Says, func(words string) bool { return strings.Contains(t.Said, words) })
		switch {
		case !t.ok() && !listed:
			wrong = append(wrong, t.Name+" fails")
		case !t.ok() && !knows:
			wrong = append(wrong, t.Name+" fails in a way that known.txt does not know")
		case t.Passed && listed && e.How != Flaky:
			wrong = append(wrong, t.Name+" passes: take it off known.txt")
		}
	}
	for name, e := range l {
		if _, ran := ours.find(name); !ran && !part && e.How != Skip {
			wrong = append(wrong, name+" is on known.txt, and there is no such test")
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return errors.New(strings.Join(wrong, "\n"))
}

// Print writes the table of tests. The run of the published server may be missing.
func (l List) Print(w io.Writer, published, ours Run) {
	width := 4
	for _, t := range ours {
		width = max(width, len(t.Name))
	}
	line := func(name, theirs, own, why string) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s  %-13s %-13s %s", width, name, theirs, own, why), " "))
	}
	line("test", "published", "anykind", "why")
	for _, t := range ours {
		other := ""
		if p, ran := published.find(t.Name); ran {
			other = p.word()
		}
		why := ""
		if !t.Passed {
			why = l[t.Name].Reason
		}
		line(t.Name, other, t.word(), why)
	}
	for _, name := range l.Names(Skip) {
		line(name, "", "not run", l[name].Reason)
	}
	for _, side := range []struct {
		name string
		run  Run
	}{{"published", published}, {"anykind", ours}} {
		if len(side.run) > 0 {
			passed, failed, skipped := side.run.Passed()
			fmt.Fprintf(w, "%s: %d passed, %d failed, %d skipped themselves\n", side.name, passed, failed, skipped)
		}
	}
}

func (r Result) word() string {
	word := "FAILED"
	switch {
	case r.Passed:
		word = "passed"
	case r.Skipped:
		word = "skipped"
	}
	return fmt.Sprintf("%s %5.1fs", word, r.Seconds)
}
