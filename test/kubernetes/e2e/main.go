// Command e2e runs the published end-to-end tests of API machinery that need no node, against
// anykind with the published kube-controller-manager.
//
// A table of the tests is printed. The command fails when a test fails that known.txt does not
// list, and when one passes that is listed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/anykind/anykind/test/kubernetes/known"
	"github.com/anykind/anykind/test/kubernetes/published"
	"github.com/anykind/anykind/test/program"
)

func main() {
	var o options
	flag.StringVar(&o.focus, "focus", focus, "run only tests that match this `regexp`")
	flag.StringVar(&o.skip, "skip", skip, "do not run tests that match this `regexp`")
	flag.BoolVar(&o.reference, "reference", false, "run the tests with the published kube-apiserver, too")
	flag.DurationVar(&o.timeout, "timeout", time.Hour, "end a run that takes longer")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// focus and skip are the tests that need no node: no pod that runs, no webhook in a pod.
const (
	focus = `\[sig-api-machinery\]`
	skip  = `\[Serial\]|\[Disruptive\]|\[Slow\]|\[Flaky\]|\[Feature:|\[Alpha\]|FeatureGate|webhook|Webhook|Aggregator|CustomResourceFieldSelectors|Generated clientset should create pods|OrderedNamespaceDeletion|` +
		`\[sig-api-machinery\] (Etcd failure|API priority and fairness|StorageVersion|kube-apiserver identity|Server request timeout|health handlers)`
)

// options say what to run.
type options struct {
	focus, skip string
	reference   bool
	timeout     time.Duration
}

func run(o options) error {
	here, err := published.Folder()
	if err != nil {
		return err
	}
	list, err := known.Read(filepath.Join(here, "e2e", "known.txt"))
	if err != nil {
		return err
	}
	p, err := build(here)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var theirs, ours known.Run
	var wrong error
	if o.reference {
		theirs, wrong = runTests(ctx, o, filepath.Join(here, ".run", "e2e-published"), p, p.kubeAPIServer)
	}
	ours, failed := runTests(ctx, o, filepath.Join(here, ".run", "e2e"), p, p.anykind)
	list.Print(os.Stdout, theirs, ours)
	return errors.Join(wrong, failed, list.Verdict(ours, o.focus != focus || o.skip != skip))
}

// programs are the paths of those that run.
type programs struct{ tests, kubectl, controllers, kubeAPIServer, etcd, anykind string }

func build(here string) (p programs, err error) {
	p.tests = filepath.Join(here, ".run", "e2e.test")
	for _, b := range []struct {
		path  *string
		build func() (string, error)
	}{
		{&p.controllers, func() (string, error) {
			return published.Program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager")
		}},
		{&p.kubectl, program.Kubectl}, {&p.kubeAPIServer, program.KubeAPIServer}, {&p.etcd, program.Etcd}, {&p.anykind, program.Anykind},
	} {
		if *b.path, err = b.build(); err != nil {
			return p, err
		}
	}
	return p, published.TestProgram(p.tests, here, "./e2e/suite", "-tags=e2e")
}
