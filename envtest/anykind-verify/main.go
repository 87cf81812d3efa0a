// Command anykind-verify finds bugs of a controller in any language, with package verify. It starts an API server, starts the
// controller as a process whose KUBECONFIG names this server, acts as a user, and injects faults.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/anykind/anykind/envtest/verify"
)

// Exit codes.
const (
	exitFound  = 1
	exitFailed = 2
)

func main() {
	log.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	found, err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, pflag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "anykind-verify:", err)
		os.Exit(exitFailed)
	case found > 0:
		os.Exit(exitFound)
	}
}

// options are the flags.
type options struct {
	world verify.World
	steps []string
	keep  bool
	log   string

	faults, samples []string

	invariants, ends []string // expressions
	always, finally  []*condition
}

func (o *options) flags(errs io.Writer) *pflag.FlagSet {
	f := pflag.NewFlagSet("anykind-verify", pflag.ContinueOnError)
	f.SortFlags = false
	f.SetInterspersed(false) // flags after the command are its own
	f.SetOutput(errs)
	w := &o.world
	f.StringSliceVar(&w.CRDDirectoryPaths, "crds", nil, "files and folders of CustomResourceDefinitions")
	f.StringArrayVarP(&o.steps, "filename", "f", nil, "file whose objects a user applies; each further -f is applied after the program has come to rest")
	f.BoolVar(&o.keep, "keep", false, "do not delete the objects at the end")
	f.BoolVar(&w.Inputs, "inputs", false, "also change each field of the last custom resource of each -f and change it back, and delete objects and apply them again")
	f.StringArrayVar(&o.samples, "samples", nil, "file of further objects: --inputs tries their values as well")
	f.BoolVar(&w.Kubelet, "kubelet", false, "make Pods ready, without containers")
	f.BoolVar(&w.WithoutWatchList, "without-watch-list", false, "reject watches that begin with a list, as before v1.34: lists can then be old after a restart")
	f.StringSliceVar(&w.Controllers, "controllers", nil, "controllers of kube-controller-manager that run in the server (default: garbage-collector-controller,namespace-controller)")
	f.StringArrayVar(&o.invariants, "always", nil, "CEL `expression` that must be true in each state of the server, with objects(apiVersion, kind)")
	f.StringArrayVar(&o.ends, "finally", nil, "CEL `expression` that must be true at the end: after the objects are deleted, or with --keep")
	f.StringSliceVar(&o.faults, "faults", nil, "kinds of faults to inject, such as crash-after,rewind (default: all)")
	f.StringSliceVar(&w.Lasting, "lasting", nil, "kinds whose objects must not be deleted and created again by rewind (default: PersistentVolumeClaim)")
	f.StringSliceVar(&w.Ignore, "ignore", nil, "fields that may differ at the end, such as Widget.status.retries")
	f.DurationVar(&w.Quiet, "quiet", 2*time.Second, "time without a change after which the program has come to rest; faults take a multiple of it")
	f.IntVar(&w.Plans, "plans", 500, "number of plans, at most")
	f.DurationVar(&w.Time, "time", 10*time.Minute, "time for all plans, at most")
	f.IntVar(&w.Findings, "findings", 3, "number of different problems after which no more plans are run")
	f.Uint64Var(&w.Seed, "seed", 0, "seed of the order of the plans")
	f.StringVar(&w.Plan, "plan", "", "the only plan to run, as a finding names it")
	f.StringVar(&o.log, "log", "", "file for the output of the program")
	f.Usage = func() {
		fmt.Fprintf(errs, `Find bugs of a controller in any language that faults reveal.

  anykind-verify --crds config/crd -f sample.yaml -- ./manager --leader-elect=false

The program reads its kubeconfig from the environment variable KUBECONFIG. It is started and killed for
each plan, so it should listen on no port that another process uses, and do without leader
election: it would wait for the end of its own Lease.

Exit codes: 0 without a finding, %d with findings, %d after an error.

`, exitFound, exitFailed)
		f.PrintDefaults()
	}
	return f
}

// run verifies a program, and returns the number of findings.
func run(ctx context.Context, args []string, out, errs io.Writer) (found int, err error) {
	var o options
	f := o.flags(errs)
	if err := f.Parse(args); err != nil {
		return 0, err
	}
	o.world.Command = f.Args()
	switch {
	case len(o.world.Command) == 0:
		return 0, errors.New("the command of the program is missing: anykind-verify [flags] -- COMMAND [ARGUMENTS]")
	case len(o.steps) == 0:
		return 0, errors.New("a controller needs an object to act on: -f FILE")
	}
	if _, err := exec.LookPath(o.world.Command[0]); err != nil {
		return 0, err
	}
	if err := o.check(); err != nil {
		return 0, err
	}
	if err := o.compile(); err != nil {
		return 0, err
	}
	samples, err := readAll(o.samples)
	if err != nil {
		return 0, err
	}
	o.world.Samples = slices.Concat(samples...)
	steps, err := readAll(o.steps)
	if err != nil {
		return 0, err
	}
	if o.log != "" {
		file, err := os.Create(o.log)
		if err != nil {
			return 0, err
		}
		defer file.Close()
		o.world.Output = file
	}
	o.world.Progress = progress(errs)
	fmt.Fprintf(errs, "running the program three times without faults\n")
	report, err := verify.ExploreCommand(ctx, o.world, func(s *verify.Scenario) { o.play(s, steps) })
	switch {
	case report == nil:
		return 0, err
	case ctx.Err() != nil && report.Plans == 0:
		return 0, errors.New("interrupted before the first plan")
	}
	for _, finding := range report.Findings {
		fmt.Fprintln(out, finding)
		if len(finding.Plan) > 0 {
			fmt.Fprintf(out, "to repeat it: %s\n\n", repeat(f, args, finding.Plan))
		}
	}
	if empty := report.Empty(); empty != nil && err == nil {
		return 0, empty
	}
	fmt.Fprintln(out, report)
	for _, c := range slices.Concat(o.always, o.finally) {
		for _, kind := range c.empty() {
			fmt.Fprintf(errs, "no object of %s existed in any state: check the apiVersion and the kind in %s\n", kind, c.text)
		}
	}
	return len(report.Findings), err
}

// progress returns a function that prints a line for each run.
func progress(errs io.Writer) func(verify.Outcome) {
	number := 0
	began := time.Now()
	return func(outcome verify.Outcome) {
		if len(outcome.Plan) == 0 {
			fmt.Fprintf(errs, "   -  %-50s %v\n", "without faults", time.Since(began).Round(time.Second))
			began = time.Now()
			return
		}
		number++
		state := "ok"
		switch {
		case outcome.Problem != nil:
			state = string(outcome.Problem.Kind)
		case len(outcome.Missed) > 0:
			state = "no effect: " + outcome.Missed.String()
		}
		fmt.Fprintf(errs, "%4d  %-50s %s\n", number, outcome.Plan, state)
	}
}

// repeat returns the command line that runs a plan again.
func repeat(f *pflag.FlagSet, args []string, p verify.Plan) string {
	flags := slices.DeleteFunc(slices.Clone(args[:len(args)-f.NArg()]), func(arg string) bool { return arg == "--" })
	if f.Lookup("plan").Value.String() != p.String() {
		flags = append(flags, "--plan="+p.String())
	}
	return quoteAll(slices.Concat([]string{f.Name()}, flags, []string{"--"}, f.Args()))
}

// check finds mistakes in the flags, and sets the kinds of faults of the World.
func (o *options) check() error {
	for _, path := range o.world.CRDDirectoryPaths {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("--crds: %w", err)
		}
	}
	if len(o.samples) > 0 && !o.world.Inputs {
		return errors.New("--samples needs --inputs")
	}
	if _, err := verify.ParsePlan(o.world.Plan); err != nil {
		return fmt.Errorf("--plan: %w", err)
	}
	for _, name := range o.faults {
		if !slices.Contains(verify.FaultKinds(), verify.FaultKind(name)) {
			return fmt.Errorf("--faults: %q is none of %v", name, verify.FaultKinds())
		}
		o.world.Faults = append(o.world.Faults, verify.FaultKind(name))
	}
	return nil
}

// compile sets always and finally.
func (o *options) compile() (err error) {
	if o.always, err = compileAll("always", o.invariants); err != nil {
		return err
	}
	o.finally, err = compileAll("finally", o.ends)
	return err
}

// play applies the objects of each step, and deletes them in the reverse order.
func (o *options) play(s *verify.Scenario, steps [][]client.Object) {
	for _, c := range o.always {
		s.Always(c.text, c.holds)
	}
	for _, c := range o.finally {
		s.Finally(c.text, c.holds)
	}
	var applied []client.Object
	for _, objects := range steps {
		s.Apply(objects...)
		s.Settle()
		applied = append(applied, objects...)
	}
	for _, object := range slices.Backward(applied) {
		if !o.keep {
			s.Delete(object)
		}
	}
}

// quoteAll returns a command line as a shell needs it.
func quoteAll(args []string) string {
	quoted := make([]string, len(args))
	for i, arg := range args {
		if quoted[i] = arg; arg == "" || strings.ContainsAny(arg, " \t\n'\"$`\\*?[]#~&;|<>(){}!") {
			quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
	}
	return strings.Join(quoted, " ")
}
