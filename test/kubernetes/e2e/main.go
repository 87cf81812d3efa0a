// Command e2e runs the published end-to-end tests of API machinery against anykind with the published
// kube-controller-manager. The one node is a fake that runs the published agnhost, which has the
// webhooks of the tests, as processes.
//
// The command prints a table of the tests. It fails if a test fails that known.txt does not list, or
// if a listed one passes.
//
// Webhooks run in pods, so pods need addresses that the server can reach. The command runs in a
// network namespace of its own, in which all of them are addresses of this machine.
package main

import (
	"context"
	"encoding/json"
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
	flag.StringVar(&o.skip, "skip", skip, "skip tests that match this `regexp`")
	flag.BoolVar(&o.reference, "reference", false, "run the tests with the published kube-apiserver, too")
	flag.DurationVar(&o.timeout, "timeout", time.Hour, "time limit for a run")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// focus matches the tests of API machinery. skip matches those that need another node than the fake
// one, or another kube-apiserver: tests that restart it or its etcd, enable a gate
// (CoordinatedLeaderElection, StorageVersionAPI), run an image (of sample-apiserver), or wait for many
// minutes until etcd is compacted. known.txt has the reasons for others.
const (
	focus = `\[sig-api-machinery\]|LimitRange`
	skip  = `\[Disruptive\]|\[Slow\]|\[Alpha\]|\[Feature:(CBOR|Coordinated|StorageVersion)|Aggregator Should|for Aggregated APIServer|` +
		`CustomResourceFieldSelectors|CustomResourceConversionWebhook`
)

// options select the tests and the servers.
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
	var p programs
	if built, inside := os.LookupEnv(inNetwork); !inside {
		return buildAndEnter(here)
	} else if err := errors.Join(json.Unmarshal([]byte(built), &p), connect()); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var theirs, ours known.Run
	var wrong error
	if o.reference {
		theirs, wrong = runTests(ctx, o, filepath.Join(here, ".run", "e2e-published"), p, p.KubeAPIServer)
	}
	ours, failed := runTests(ctx, o, filepath.Join(here, ".run", "e2e"), p, p.Anykind)
	list.Print(os.Stdout, theirs, ours)
	return errors.Join(wrong, failed, list.Verdict(ours, o.focus != focus || o.skip != skip))
}

// programs are the paths of the programs.
type programs struct{ Tests, Kubectl, Controllers, KubeAPIServer, Etcd, Anykind, Agnhost string }

// inNetwork is the environment variable with the paths of the programs. It marks a process in its own
// network namespace.
const inNetwork = "E2E_IN_NETWORK_WITH"

func buildAndEnter(here string) error {
	p, err := build(here)
	if err != nil {
		return err
	}
	built, err := json.Marshal(p)
	if err != nil {
		return err
	}
	return enter(inNetwork + "=" + string(built))
}

func build(here string) (p programs, err error) {
	p.Tests = filepath.Join(here, ".run", "e2e.test")
	for _, b := range []struct {
		path  *string
		build func() (string, error)
	}{
		{&p.Agnhost, func() (string, error) {
			return program.OfKubernetes("agnhost", "k8s.io/kubernetes/test/images/agnhost")
		}},
		{&p.Controllers, program.KubeControllerManager}, {&p.Kubectl, program.Kubectl}, {&p.KubeAPIServer, program.KubeAPIServer}, {&p.Etcd, program.Etcd}, {&p.Anykind, program.Anykind},
	} {
		if *b.path, err = b.build(); err != nil {
			return p, err
		}
	}
	return p, published.TestProgram(p.Tests, here, "./e2e/suite", "-tags=e2e")
}
