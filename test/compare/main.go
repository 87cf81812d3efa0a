// Command compare sends generated requests to a published kube-apiserver and to anykind, and reports
// differences between the responses.
//
// A generator makes a request (package generate), both servers receive it at the same moment (package
// wire), and the normalized responses are compared (package judge). A difference has a signature: the
// kind of request, the resource, the place in the response, and the text of either side there. The
// entries of known.txt cover known signatures, one by one or in classes. Any other signature fails the
// command, and so does an entry that no longer occurs: the list may only become shorter.
//
// The same seed sends the same requests: `compare -seed 7 -from 123 -count 1` sends one sequence
// again, and `compare -seed 7 -only 12,123` sends two.
//
// `compare -every 3 -duration 1h` runs nine comparisons in parallel: three new seeds over each store.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := command(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context) error {
	o := Options{}
	s := servers.Options{}
	var kinds, list, logs, emulated, only string
	var seeds int
	flag.StringVar(&s.Reference, "reference", "start", "compare with the server of this `kubeconfig`, with a kube-apiserver program of another release, or with one of this release that is started if it is \"start\"")
	flag.StringVar(&emulated, "emulated", "", "the `release` that anykind emulates, such as 1.36, and that a kube-apiserver of this release emulates, too")
	flag.StringVar(&s.Store, "store", "file", "where anykind keeps objects: memory, file, fork or etcd")
	flag.StringVar(&s.Gates, "gates", "", "feature `gates` of both servers, such as AllAlpha=true,AllBeta=true")
	flag.StringVar(&s.Config, "runtime-config", "", "the --runtime-config of both servers, such as api/all=true")
	flag.Uint64Var(&o.Seed, "seed", 0, "the same seed sends the same requests (default: any)")
	flag.Uint64Var(&o.From, "from", 0, "the `number` of the first sequence")
	flag.Uint64Var(&o.Count, "count", 0, "how many sequences to send at most (default: as many as there is time for)")
	flag.StringVar(&only, "only", "", "the `numbers` of the sequences to send, separated by commas (default: all)")
	flag.DurationVar(&o.Time, "duration", 5*time.Minute, "how long to send")
	flag.IntVar(&o.Workers, "workers", 4, "how many sequences to send at a time")
	flag.StringVar(&kinds, "kinds", "", "`kinds` of requests to send, separated by commas (default: all)")
	flag.StringVar(&list, "known", "known.txt", "the `file` with what is known")
	audit := flag.Bool("audit", false, "compare audit events in place of responses, under several policies, with audit.txt as the list of what is known")
	flag.IntVar(&seeds, "every", 0, "compare each store with this `number` of new seeds, all side by side")
	flag.StringVar(&logs, "logs", filepath.Join(os.TempDir(), "compare-logs"), "the `directory` for the logs of -every")
	flag.Parse()
	if seeds > 0 {
		return every(ctx, seeds, logs, os.Args[1:], os.Stdout)
	}
	if o.Seed == 0 {
		o.Seed = pick()
	}
	var err error
	if o.Kinds, err = choose(kinds); err != nil {
		return err
	}
	if only != "" {
		if err := o.only(only); err != nil {
			return err
		}
	}
	if *audit && list == "known.txt" {
		list = "audit.txt"
	}
	known, err := judge.ReadKnown(list)
	if err != nil {
		return err
	}
	if s.Dir, err = os.MkdirTemp("", "compare"); err != nil {
		return err
	}
	defer os.RemoveAll(s.Dir)
	s.WithoutControllers()
	if emulated != "" {
		version := "--emulated-version=" + emulated
		s.Ours = append(s.Ours, version)
		if s.Reference == "start" {
			s.Theirs = append(s.Theirs, version)
		}
	}
	fmt.Printf("seed %d\n", o.Seed)
	compare := runResponses
	if *audit {
		compare = runAudits
	}
	report := newReport(known, os.Stdout)
	err = compare(ctx, o, s, report)
	report.Print()
	return errors.Join(err, report.Verdict())
}

// runResponses compares the responses to all sequences.
func runResponses(ctx context.Context, o Options, s servers.Options, report *Report) error {
	pair, err := servers.Start(ctx, s)
	if err != nil {
		return err
	}
	defer pair.Stop()
	return run(ctx, o, pair, report)
}

// only selects the sequences with these numbers.
func (o *Options) only(numbers string) error {
	chosen := map[uint64]bool{}
	for text := range strings.SplitSeq(numbers, ",") {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return fmt.Errorf("%q is not the number of a sequence: %w", text, err)
		}
		chosen[n] = true
	}
	all := slices.Sorted(maps.Keys(chosen))
	o.From = all[0]
	o.Count = all[len(all)-1] - o.From + 1
	o.mine = func(n uint64) bool { return chosen[n] }
	return nil
}

// choose returns the kinds of requests with these names, or all without a name.
func choose(names string) ([]generate.Kind, error) {
	all := generate.All()
	if names == "" {
		return all, nil
	}
	var out []generate.Kind
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(all, func(k generate.Kind) bool { return k.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q is no kind of request", name)
		}
		out = append(out, all[i])
	}
	return out, nil
}
