// Command integration runs packages of test/integration of the published k8s.io/kubernetes that are
// about the API, against anykind under the name kube-apiserver.
//
// It copies the tests from the module cache and renames the function that starts their server, so that
// the files in glue can start a process instead. One test program for each package runs with both
// servers. The command prints a table of packages and tests. It fails if a test fails that known.txt
// does not list, or if a listed one passes.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/kubernetes/known"
	"github.com/anykind/anykind/test/kubernetes/published"
	"github.com/anykind/anykind/test/program"
)

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", "", "keep the copy of the tests and their output in the folder integration of this `folder`")
	flag.StringVar(&o.packages, "packages", "", "run only these comma-separated `packages`")
	flag.StringVar(&o.run, "run", "", "run only tests that match this `regexp`")
	flag.BoolVar(&o.reference, "reference", false, "run the tests with the published kube-apiserver, too")
	flag.DurationVar(&o.timeout, "timeout", 20*time.Minute, "time limit for a package")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options select the packages and the servers.
type options struct {
	dir           string // parent of the work folder; empty for a folder that git ignores
	packages, run string
	reference     bool
	timeout       time.Duration
}

func run(o options) error {
	here, err := published.Folder()
	if err != nil {
		return err
	}
	list, err := known.Read(filepath.Join(here, "integration", "known.txt"))
	if err != nil {
		return err
	}
	packages := all
	if o.packages != "" {
		packages = strings.Split(o.packages, ",")
	}
	anykind, err := program.Anykind()
	if err != nil {
		return err
	}
	etcd, err := program.Etcd()
	if err != nil {
		return err
	}
	s, err := prepare(here, filepath.Join(cmp.Or(o.dir, filepath.Join(here, ".run")), "integration"), anykind, etcd)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stopEtcd, err := s.startEtcd(etcd)
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer stopEtcd()
	var theirs, ours known.Run
	var table []string
	var broken error
	for _, p := range packages {
		if err := s.build(p); err != nil {
			broken = errors.Join(broken, err)
			continue
		}
		line := fmt.Sprintf("%-30s", p)
		for _, side := range sides(o, &theirs, &ours) {
			r, err := s.test(ctx, o, list, p, side.name)
			if err != nil {
				broken = errors.Join(broken, err)
				continue
			}
			*side.run = append(*side.run, r...)
			line += fmt.Sprintf("  %s %s", side.name, counted(r))
		}
		table = append(table, line)
		if err := os.Remove(s.program(p)); err != nil { // it has a hundred megabytes
			broken = errors.Join(broken, err)
		}
		fmt.Fprintln(os.Stderr, line)
	}
	list.Print(os.Stdout, theirs, ours)
	fmt.Println("\n" + strings.Join(table, "\n"))
	return errors.Join(broken, list.Verdict(ours, o.packages != "" || o.run != ""))
}

// A side has the results with one server.
type side struct {
	name string
	run  *known.Run
}

func sides(o options, theirs, ours *known.Run) []side {
	if !o.reference {
		return []side{{"anykind", ours}}
	}
	return []side{{"published", theirs}, {"anykind", ours}}
}

func counted(r known.Run) string {
	passed, failed, skipped := r.Passed()
	var seconds float64
	for _, t := range r {
		seconds += t.Seconds
	}
	return fmt.Sprintf("%3d of %3d in %4.0fs", passed, passed+failed+skipped, seconds)
}
