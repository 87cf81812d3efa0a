// Command bench measures anykind and kube-apiserver with etcd side by side, and writes
// docs/benchmarks.md. `make bench` runs it; see -help.
//
// It builds the programs, runs each scenario of package row on both servers in turn, and passes the
// values to package report.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/bench/load"
	"github.com/anykind/anykind/test/bench/report"
	"github.com/anykind/anykind/test/bench/row"
	"github.com/anykind/anykind/test/bench/server"
	"github.com/anykind/anykind/test/program"
)

func main() {
	load.IfApart()
	b := &bench{}
	full := flag.Bool("full", false, "measure full loads for hours; without it, a tenth of large loads for minutes")
	only := flag.String("only", "", "comma-separated names of rows and scenarios to measure, with * as wildcard; the other results stay unchanged")
	flag.StringVar(&b.scratch, "scratch", "", "`folder` for the data of the servers, on the disk to measure (default .build/bench)")
	docs := flag.String("docs", "../docs", "`folder` for benchmarks.md")
	flag.StringVar(&b.programs.Anykind, "anykind", "", "path of a built program; empty to build it")
	flag.StringVar(&b.programs.KubeAPIServer, "kube-apiserver", "", "path of a built program; empty to build it")
	flag.StringVar(&b.programs.Etcd, "etcd", "", "path of a built program; empty to build it")
	flag.IntVar(&b.pairs, "pairs", 0, "number of runs of each server; 0 for the default of the mode")
	flag.StringVar(&b.side, "side", "", "run one `side` only, anykind or reference, and write nothing")
	flag.BoolVar(&b.again, "write", false, "write the page from earlier results, without measuring")
	flag.Parse()
	b.size = row.Quick()
	if *full {
		b.size = row.Full()
	}
	b.files = report.Files{Docs: *docs}
	b.only = patterns(*only)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := b.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// patterns returns a filter for a list of patterns.
func patterns(list string) func(string) bool {
	return func(name string) bool {
		if list == "" {
			return true
		}
		for p := range strings.SplitSeq(list, ",") {
			if ok, err := path.Match(p, name); err == nil && ok {
				return true
			}
		}
		return false
	}
}

type bench struct {
	scratch, side string
	pairs         int
	again         bool
	versions      string // versions of the programs, from the time of their build
	only          func(string) bool
	size          row.Size
	files         report.Files
	programs      server.Programs
}

func say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

func (b *bench) run(ctx context.Context) error {
	if b.again {
		results, err := b.files.Read()
		if err != nil {
			return err
		}
		return b.files.Write(results)
	}
	if err := b.build(); err != nil {
		return err
	}
	b.versions = b.describe() // the sources may change during the run
	scenarios, err := row.Scenarios(b.size, b.only)
	if err != nil {
		return err
	}
	if len(scenarios) == 0 {
		return errors.New("-only matches no row and no scenario")
	}
	for _, s := range scenarios {
		results, err := b.files.Read()
		if err != nil {
			return err
		}
		if err := b.scenario(ctx, s, results); err != nil {
			return err
		}
		if b.side != "" {
			continue
		}
		if err := b.files.Write(results); err != nil { // after each: no failure loses an hour of results
			return err
		}
	}
	return nil
}

// build builds the programs that no flag names.
func (b *bench) build() (err error) {
	if b.scratch == "" {
		top, err := program.Top()
		if err != nil {
			return err
		}
		b.scratch = filepath.Join(top, ".build", "bench")
	}
	if err := os.MkdirAll(b.scratch, 0o755); err != nil {
		return err
	}
	for _, p := range []struct {
		path  *string
		build func() (string, error)
	}{
		{&b.programs.Anykind, program.Anykind},
		{&b.programs.KubeAPIServer, program.KubeAPIServer},
		{&b.programs.Etcd, program.Etcd},
	} {
		if *p.path != "" {
			continue
		}
		if *p.path, err = p.build(); err != nil {
			return err
		}
	}
	return nil
}

// scenario runs the pairs: A B, B A, A B, ...
func (b *bench) scenario(ctx context.Context, s *row.Scenario, results *report.Results) error {
	how := b.circumstances()
	pairs := s.Pairs
	if b.pairs > 0 {
		pairs = b.pairs
	}
	say("%s: %s", s.Name, s.Title)
	var rounds []round
	for i := range pairs {
		r := round{anykindFirst: i%2 == 0}
		for half := range 2 {
			anykind := (half == 0) == r.anykindFirst
			if anykind && b.side == "reference" || !anykind && (b.side == "anykind" || s.Alone) {
				continue
			}
			sides := s.Sides(b.programs)
			kind := sides.Reference
			if anykind {
				kind = sides.Anykind
			}
			say(" pair %d of %d, %s", i+1, pairs, kind.Name)
			run, err := s.Of(ctx, kind, b.scratch, b.size, say)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			r.put(anykind, run, err)
		}
		rounds = append(rounds, r)
	}
	for _, r := range s.Rows {
		results.Put(measured(r, s, how, rounds))
	}
	if s.Curve != nil {
		for _, r := range s.Curve.Rows {
			results.PutCurve(plotted(r, s, how, rounds))
		}
	}
	return nil
}

// A round is a pair of runs.
type round struct {
	anykindFirst       bool
	anykind, reference *row.Run
	notes              []string
	skipped            string
}

func (r *round) put(anykind bool, run *row.Run, err error) {
	name := "reference"
	if anykind {
		r.anykind, name = run, "anykind"
	} else {
		r.reference = run
	}
	if err == nil {
		return
	}
	say("  %s: %v", name, err)
	if s, ok := errors.AsType[*row.Skipped](err); ok {
		r.skipped = s.Why
	}
	r.notes = append(r.notes, fmt.Sprintf("%s: %v.", name, err))
}

func measured(of row.Row, s *row.Scenario, how report.Circumstances, rounds []round) report.Measured {
	m := report.Measured{Row: of, Scenario: s.Title, About: s.About, How: how}
	value := func(run *row.Run) *row.Value {
		if run == nil {
			return nil
		}
		if v, ok := run.Values[of.ID]; ok {
			return &v
		}
		return nil
	}
	for _, r := range rounds {
		m.Pairs = append(m.Pairs, report.Pair{AnykindFirst: r.anykindFirst, Anykind: value(r.anykind), Reference: value(r.reference)})
		m.Skipped = r.skipped
		m.Notes = append(m.Notes, r.notes...)
	}
	return m
}

func plotted(of row.Row, s *row.Scenario, how report.Circumstances, rounds []round) report.Plotted {
	p := report.Plotted{Row: of, Scenario: s.Title, Along: s.Curve.Along, Shape: s.Curve.Shape, How: how}
	r := rounds[len(rounds)-1]
	if r.anykind != nil {
		p.Anykind = r.anykind.Points[of.ID]
	}
	if r.reference != nil {
		p.Reference = r.reference.Points[of.ID]
	}
	p.Notes = r.notes
	return p
}

// circumstances describes the machine and the programs.
func (b *bench) circumstances() report.Circumstances {
	command := "make bench"
	if len(os.Args) > 1 {
		command += " ARGS='" + strings.Join(os.Args[1:], " ") + "'"
	}
	return report.Circumstances{
		When: time.Now(), Mode: b.size.Mode, Command: command, Machine: machine(),
		Versions: b.versions,
		Load:     average(),
	}
}

// describe returns the versions of the measured programs.
func (b *bench) describe() string {
	return strings.Join([]string{
		"anykind " + said("git", "describe", "--always", "--dirty"),
		"kube-apiserver " + strings.TrimPrefix(said(b.programs.KubeAPIServer, "--version"), "Kubernetes "),
		strings.ReplaceAll(said(b.programs.Etcd, "--version"), "etcd Version:", "etcd"),
		runtime.Version(),
	}, ", ")
}

// said returns the first line of a program's output.
func said(name string, args ...string) string {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "(" + err.Error() + ")"
	}
	first, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(first)
}

func machine() string {
	model := runtime.GOARCH
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, after, found := strings.Cut(string(data), "model name")
		if name, _, _ := strings.Cut(after, "\n"); found {
			model = strings.TrimLeft(name, " \t:")
		}
	}
	text := fmt.Sprintf("%d cores of %s, %s", runtime.NumCPU(), model, runtime.GOOS)
	if n, err := row.Installed(); err == nil {
		text += fmt.Sprintf(", %d GB", n/1_000_000_000)
	}
	return text
}

// average returns the load average of the last minute.
func average() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}
