package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/compare/wire"
)

// Options select the requests of a run.
type Options struct {
	Seed    uint64
	From    uint64 // number of the first sequence
	Count   uint64 // maximal number of sequences; 0 for no limit but Time
	Time    time.Duration
	Kinds   []generate.Kind
	Workers int

	audits *audits             // of both servers; nil to compare responses
	mine   func(n uint64) bool // selects sequences; nil selects all
}

// A Report is the result of a run.
type Report struct {
	mu          sync.Mutex
	out         io.Writer
	Sent        map[string]int // number of requests, by kind
	Sequences   int
	Audited     int // number of requests whose audit events were compared
	Found       int // number of differences, including known ones
	Forgotten   int // number of revisions that only one server had compacted
	Unknown     map[judge.Signature]int
	Unconfirmed map[judge.Signature]int // those that did not recur
	Known       judge.Known
	told        map[example]bool
}

// newReport returns an empty Report that prints to out.
func newReport(known judge.Known, out io.Writer) *Report {
	return &Report{out: out, Sent: map[string]int{}, Unknown: map[judge.Signature]int{}, Unconfirmed: map[judge.Signature]int{},
		Known: known, told: map[example]bool{}}
}

// A runner compares two servers.
type runner struct {
	Options
	*Report
	pair  *servers.Pair
	world *generate.World
}

// An example is the signature of a printed difference, without request and resource.
type example struct {
	judge.Signature
	confirmed bool
}

// run sends sequences until its time is up, and adds the results to a Report.
func run(ctx context.Context, o Options, pair *servers.Pair, report *Report) error {
	world, err := prepare(ctx, pair)
	if err != nil {
		return err
	}
	r := &runner{Options: o, pair: pair, world: world, Report: report}
	timed, cancel := context.WithTimeout(ctx, o.Time)
	defer cancel()
	var next atomic.Uint64
	var done sync.WaitGroup
	for range o.Workers {
		done.Go(func() {
			for timed.Err() == nil {
				n := next.Add(1) - 1
				if o.Count > 0 && n >= o.Count {
					return
				}
				if n += o.From; o.mine == nil || o.mine(n) {
					r.sequence(ctx, n)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { done.Wait(); close(ended) }()
	progress := time.NewTicker(15 * time.Second)
	defer progress.Stop()
	for {
		select {
		case <-progress.C:
			r.progress()
		case <-ended:
			r.progress()
			return ctx.Err()
		}
	}
}

// isKnown reports whether a signature is in the list.
func (r *runner) isKnown(s judge.Signature) bool { return r.Known.Has(s) }

// sequence sends one sequence, and confirms its unknown differences.
func (r *runner) sequence(ctx context.Context, n uint64) {
	seq := generate.Sequence(r.world, r.Kinds, r.Seed, n)
	if r.audits != nil {
		seq = generate.Called(seq, r.Seed, n)
	}
	a := r.try(ctx, seq, int(n), 0)
	if ctx.Err() != nil {
		return
	}
	for _, f := range r.count(a) {
		r.confirm(ctx, seq, n, f)
	}
}

// count adds an attempt to the report, and returns the unknown differences that are not confirmed yet.
func (r *runner) count(a *attempt) (fresh []found) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Sequences++
	for kind, times := range a.sent {
		r.Sent[kind] += times
	}
	r.Audited += len(a.equal)
	r.Found += len(a.found)
	r.Forgotten += a.forgotten
	for _, f := range a.found {
		switch {
		case r.Known.Match(f.Signature) != nil:
		case r.Unknown[f.Signature] > 0:
			r.Unknown[f.Signature]++
		default:
			fresh = append(fresh, f)
		}
	}
	return fresh
}

func (r *runner) try(ctx context.Context, seq wire.Sequence, n, attempt int) *attempt {
	return try(ctx, r.pair, r.audits, r.isKnown, seq, wire.ScopeName(n, attempt))
}

// repeats is the number of times that a sequence is repeated, under fresh names, before a difference
// counts. It must recur each time: a difference by timing, or by the order of a Go map, does not.
const repeats = 3

// confirm repeats the sequence of a difference. It prints the first of each set of similar
// differences, whether it recurs or not.
func (r *runner) confirm(ctx context.Context, seq wire.Sequence, n uint64, f found) {
	number := 0
	again := func(seq wire.Sequence) bool {
		number++
		a := r.try(ctx, seq, int(n), number)
		return slices.ContainsFunc(a.found, func(other found) bool { return other.Signature == f.Signature })
	}
	confirmed := true
	for i := 0; i < repeats && confirmed; i++ {
		confirmed = again(seq)
	}
	if ctx.Err() != nil || !r.conclude(f, confirmed) {
		return
	}
	if confirmed {
		last := f.step
		if seq.Steps[last].Watch {
			last = len(seq.Steps) - 1
		}
		seq = reduce(seq, last, again)
	}
	r.tell(seq, n, f, confirmed)
}

// conclude counts a difference, and reports whether it is the first similar one: one example is
// enough.
func (r *runner) conclude(f found, confirmed bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if confirmed {
		r.Unknown[f.Signature]++
	} else {
		r.Unconfirmed[f.Signature]++
	}
	alike := example{f.Signature, confirmed}
	alike.Request, alike.Resource = "", ""
	first := !r.told[alike]
	r.told[alike] = true
	return first
}

// tell prints a difference with its sequence.
func (r *runner) tell(seq wire.Sequence, n uint64, f found, confirmed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "=== sequence %d of seed %d, %s", n, r.Seed, seq.Kind)
	if !confirmed {
		b.WriteString(", did not come again")
	}
	fmt.Fprintf(&b, "\n%s\n", f.Signature)
	for i, step := range seq.Steps {
		fmt.Fprintf(&b, "%d. %s\n", i+1, step)
	}
	fmt.Fprintf(&b, "K %s: %s\nA %s: %s\n\n", f.Difference.Place, wire.Printable([]byte(f.Difference.Theirs), 1500), f.Difference.Place, wire.Printable([]byte(f.Difference.Ours), 1500))
	fmt.Fprint(r.out, b.String())
}

// requests returns the number of sent requests.
func (r *Report) requests() (sum int) {
	for _, n := range r.Sent {
		sum += n
	}
	return sum
}

// progress prints the numbers so far.
func (r *runner) progress() {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, "--- %d sequences, %d requests; differences: %d, unknown: %d, once only: %d\n", r.Sequences, r.requests(), r.Found, len(r.Unknown), len(r.Unconfirmed))
}

// Print prints the report.
func (r *Report) Print() {
	fmt.Fprintln(r.out, "\nrequests sent, by kind:")
	for _, kind := range slices.Sorted(maps.Keys(r.Sent)) {
		fmt.Fprintf(r.out, "  %7d %s\n", r.Sent[kind], kind)
	}
	r.list("differences that are not known", r.Unknown)
	r.list("differences that did not come again", r.Unconfirmed)
	fmt.Fprintln(r.out, "\ndifferences that are known, and how often they were seen:")
	for _, e := range r.Known {
		fmt.Fprintf(r.out, "  %7d %s; %s; %s: %s\n", e.Seen, e.Request, e.Resource, e.Place, e.Because)
	}
	for _, e := range r.Known.Gone(r.Sent) {
		fmt.Fprintf(r.out, "\nis known, and not there any more:\n%s\n", e.Signature)
	}
	if r.Audited > 0 {
		fmt.Fprintf(r.out, "\naudit events were compared of %d requests, those with equal responses\n", r.Audited)
	}
	fmt.Fprintf(r.out, "\n%s%s\n", summarized, r.summary())
}

// summary returns the numbers of the report in a line. A class is an entry of the list, or a set of
// similar unknown differences.
func (r *Report) summary() string {
	seen := 0
	for _, e := range r.Known {
		if e.Seen > 0 {
			seen++
		}
	}
	return fmt.Sprintf("%d sequences, %d requests, %d differences; listed classes: %d seen of %d, %d gone; not listed: %d; once only: %d; forgotten by one: %d",
		r.Sequences, r.requests(), r.Found, seen, len(r.Known), len(r.Known.Gone(r.Sent)), len(r.Unknown), len(r.Unconfirmed), r.Forgotten)
}

// list prints signatures in the format of known.txt. It merges those that differ only in request and
// resource.
func (r *Report) list(title string, signatures map[judge.Signature]int) {
	type group struct {
		requests, resources map[string]bool
		times               int
	}
	groups := map[judge.Signature]*group{}
	for s, times := range signatures {
		alike := s
		alike.Request, alike.Resource = "", ""
		if groups[alike] == nil {
			groups[alike] = &group{requests: map[string]bool{}, resources: map[string]bool{}}
		}
		groups[alike].requests[s.Request], groups[alike].resources[s.Resource] = true, true
		groups[alike].times += times
	}
	fmt.Fprintf(r.out, "\n%s: %d\n", title, len(groups))
	for _, s := range slices.SortedFunc(maps.Keys(groups), func(a, b judge.Signature) int {
		return cmp.Or(groups[b].times-groups[a].times, strings.Compare(a.String(), b.String()))
	}) {
		g := groups[s]
		s.Request = strings.Join(slices.Sorted(maps.Keys(g.requests)), ", ")
		s.Resource = strings.Join(slices.Sorted(maps.Keys(g.resources)), ", ")
		fmt.Fprintf(r.out, "\n%s\n# %d times\n", s, g.times)
	}
}

// mostForgotten is the share of requests from revisions that only one server has compacted. There are more if a server loses
// revisions.
const mostForgotten = 0.01

// Verdict returns an error for unknown differences and for entries that are gone.
func (r *Report) Verdict() error {
	requests := r.requests()
	if float64(r.Forgotten) > mostForgotten*float64(requests) && requests > 1000 {
		return fmt.Errorf("%d of %d requests had a revision that only one server had compacted", r.Forgotten, requests)
	}
	if unknown, gone := len(r.Unknown), len(r.Known.Gone(r.Sent)); unknown+gone > 0 {
		return fmt.Errorf("%d differences are not known, and %d that are known are not there any more", unknown, gone)
	}
	return nil
}

// pick returns a random seed for a run without -seed.
func pick() uint64 { return rand.Uint64N(1_000_000) }
