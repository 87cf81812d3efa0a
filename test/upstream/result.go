package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A result has the outcomes of the tests.
type result struct {
	tests map[string]*outcome
	took  time.Duration
}

// An outcome is the outcome of one test.
type outcome struct {
	name    string
	action  string // pass, fail, skip; empty while it runs
	took    time.Duration
	passed  int      // subtests without subtests of their own
	failed  []string // the same
	lines   []string
	parents map[string]bool
}

// An event is a line of go test -json.
type event struct {
	Action, Package, Test, Output string
	Elapsed                       float64
}

// test runs the tests and writes the output of each failed one to a file of its own.
func (s *suite) test(o options, known map[string]entry) (*result, error) {
	args := []string{"test", "-modfile=" + filepath.Join(s.dir, "go.mod")}
	return runTests(o, command{args: args, packages: packages}, known, filepath.Join(s.dir, "failed"))
}

// testReference runs the tests with their original server.
func (s *suite) testReference(o options) (*result, error) {
	return runTests(o, command{args: []string{"test"}, packages: packages}, nil, filepath.Join(s.dir, "failed-reference"))
}

// A command is a go test command for some packages, in a folder.
type command struct {
	dir      string
	args     []string
	packages []string
}

// with returns the command with additional arguments.
func (c command) with(args ...string) *exec.Cmd {
	cmd := exec.Command("go", slices.Concat(c.args, args, c.packages)...)
	cmd.Dir = c.dir
	return cmd
}

func runTests(o options, c command, known map[string]entry, logs string) (*result, error) {
	c.args = append(c.args, "-vet=off", "-count=1", "-p=1")
	// The time of the tests does not include compilation.
	compile := c.with("-run", "^$")
	if said, err := compile.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the tests: %w\n%s", err, said)
	}
	args := []string{"-json", "-timeout", o.timeout.String(), "-run", o.run}
	if skipped := skippedOf(known); len(skipped) > 0 {
		args = append(args, "-skip", "^("+strings.Join(skipped, "|")+")$")
	}
	cmd := c.with(args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	r, err := read(out)
	if waited := cmd.Wait(); err == nil {
		err = waited
	}
	var failed *exec.ExitError
	if err != nil && !(errors.As(err, &failed) && len(r.tests) > 0) {
		return nil, fmt.Errorf("go test: %w", err)
	}
	r.took = time.Since(start)
	return r, r.writeLogs(logs)
}

// read collects events.
func read(from io.Reader) (*result, error) {
	r := &result{tests: map[string]*outcome{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return r, err
		}
		switch {
		case e.Action == "build-output", e.Action == "output" && e.Test == "" && strings.HasPrefix(e.Output, "panic:"):
			fmt.Fprint(os.Stderr, e.Output)
		case e.Test != "":
			r.add(e)
		}
	}
	return r, lines.Err()
}

func (r *result) add(e event) {
	name, sub, isSub := strings.Cut(e.Test, "/")
	t := r.tests[name]
	if t == nil {
		t = &outcome{name: name, parents: map[string]bool{}}
		r.tests[name] = t
	}
	if isSub {
		if i := strings.LastIndex(sub, "/"); i >= 0 {
			t.parents[sub[:i]] = true
		}
	}
	switch e.Action {
	case "output":
		t.lines = append(t.lines, e.Output)
	case "pass", "fail", "skip":
		switch {
		case !isSub:
			t.action, t.took = e.Action, time.Duration(e.Elapsed*float64(time.Second))
			fmt.Fprintf(os.Stderr, "%-4s %6.1fs %s\n", e.Action, e.Elapsed, name)
		case t.parents[sub]:
		case e.Action == "fail":
			t.failed = append(t.failed, sub)
		default:
			t.passed++
		}
	}
}

// writeLogs writes the output of failed tests.
func (r *result) writeLogs(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, t := range r.sorted() {
		if t.ok() {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, t.name+".log"), []byte(strings.Join(t.lines, "")), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func (t *outcome) ok() bool { return t.action == "pass" || t.action == "skip" }

func (r *result) sorted() []*outcome {
	var all []*outcome
	for _, t := range r.tests {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *outcome) int { return strings.Compare(a.name, b.name) })
	return all
}

// print writes the table.
func (r *result) print(w io.Writer, known map[string]entry) {
	var passed, failed, skipped int
	fmt.Fprintf(w, "%-7s %-62s %8s %9s  %s\n", "", "test", "seconds", "subtests", "why")
	line := func(what, name, took, subtests, why string) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-7s %-62s %8s %9s  %s", what, name, took, subtests, why), " "))
	}
	for _, t := range r.sorted() {
		what, why := t.action, ""
		switch {
		case t.action == "pass":
			passed++
		case t.action == "skip":
			skipped++
			why = "skips itself"
		default:
			failed++
			what = "FAIL"
			if e, ok := known[t.name]; ok {
				what, why = "known", e.owner+": "+e.reason
			}
		}
		subtests := ""
		if n := t.passed + len(t.failed); n > 0 {
			subtests = fmt.Sprintf("%d/%d", t.passed, n)
		}
		line(what, t.name, fmt.Sprintf("%.1f", t.took.Seconds()), subtests, why)
	}
	for _, name := range skippedOf(known) {
		skipped++
		line("skipped", name, "", "", known[name].owner+": "+known[name].reason)
	}
	fmt.Fprintf(w, "\n%d of %d passed, %d failed, %d skipped, in %v\n",
		passed, passed+failed+skipped, failed, skipped, r.took.Round(time.Second))
}

// verdict returns an error if the results and the list disagree. part means that only some tests ran.
func (r *result) verdict(known map[string]entry, part bool) error {
	var wrong []string
	for _, t := range r.sorted() {
		e, isKnown := known[t.name]
		switch {
		case !t.ok() && isKnown:
			for _, other := range e.otherErrors(t) {
				wrong = append(wrong, t.name+" fails in a way that known.txt does not know: "+other)
			}
		case t.ok() && isKnown:
			wrong = append(wrong, t.name+" passes: take it off known.txt")
		case !t.ok() && !isKnown:
			wrong = append(wrong, t.name+" fails: see .run/failed/"+t.name+".log")
		}
	}
	for name, e := range known {
		if r.tests[name] == nil && !e.skip && !part {
			wrong = append(wrong, name+" is on known.txt, and there is no such test")
		}
	}
	if len(wrong) > 0 {
		return errors.New(strings.Join(wrong, "\n"))
	}
	return nil
}
