// Command cmd runs the shell suite of kubectl, test/cmd of the published k8s.io/kubernetes, with the
// published kubectl and kube-controller-manager, against anykind under the name kube-apiserver.
//
// The suite is unchanged: it calls kube-apiserver at its usual place, and finds ours there. The
// command prints a table of the sections. It fails if a section fails that known.txt does not list, or
// if a listed one passes.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/anykind/anykind/test/kubernetes/known"
	"github.com/anykind/anykind/test/kubernetes/published"
)

func main() {
	var o options
	flag.StringVar(&o.what, "what", "", "run only these `sections`: NAME for run_NAME_tests")
	flag.BoolVar(&o.reference, "reference", false, "run the suite with the published kube-apiserver, too")
	flag.DurationVar(&o.timeout, "timeout", time.Hour, "time limit for a suite")
	flag.BoolVar(&o.verbose, "v", false, "show the whole output of the suite")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options select the sections and the servers.
type options struct {
	what      string
	reference bool
	timeout   time.Duration
	verbose   bool
}

func run(o options) error {
	here, err := published.Folder()
	if err != nil {
		return err
	}
	list, err := known.Read(filepath.Join(here, "cmd", "known.txt"))
	if err != nil {
		return err
	}
	programs, err := build()
	if err != nil {
		return err
	}
	var theirs, ours known.Run
	var wrong, failed error
	var both sync.WaitGroup // the suite waits more than it computes
	if o.reference {
		both.Go(func() {
			theirs, wrong = runSuite(o, "published", filepath.Join(here, ".run", "cmd-published"), programs, programs.kubeAPIServer)
		})
	}
	both.Go(func() {
		ours, failed = runSuite(o, "anykind", filepath.Join(here, ".run", "cmd"), programs, programs.anykind)
	})
	both.Wait()
	list.Print(os.Stdout, theirs, ours)
	if wrong != nil || failed != nil {
		return errors.Join(wrong, failed)
	}
	return list.Verdict(ours, o.what != "")
}
