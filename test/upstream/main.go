// Command upstream runs the published integration tests of k8s.io/apiextensions-apiserver against
// anykind over an etcd. With -admission it runs those of k8s.io/kubernetes about admission webhooks:
// see the folder admission.
//
// It copies their published source from the module cache to a folder that git ignores, and replaces
// only the file that starts their server, by fixtures/server.go. It prints a table of tests that pass,
// that fail, and that are known to fail (known.txt). It fails if a test fails that is not known to, or
// if a known one passes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.run, "run", "", "run only tests that match this `regexp`")
	flag.DurationVar(&o.timeout, "timeout", 40*time.Minute, "time limit for a package")
	flag.BoolVar(&o.reference, "reference", false, "run Kubernetes' own server over the same etcd, too, and compare the times")
	flag.BoolVar(&o.admission, "admission", false, "run the tests of admission webhooks instead")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "upstream:", err)
		os.Exit(1)
	}
}

// options select the tests and the servers.
type options struct {
	run       string
	timeout   time.Duration
	reference bool
	admission bool
}

func run(o options) error {
	if o.admission {
		return runAdmission(o)
	}
	known, err := readKnown("known.txt")
	if err != nil {
		return err
	}
	s, err := prepare(".run", "fixtures/server.go")
	if err != nil {
		return err
	}
	etcd, err := startEtcd(filepath.Join(s.dir, "etcd"))
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer etcd.Close()
	r, err := s.test(o, known)
	if err != nil {
		return err
	}
	r.print(os.Stdout, known)
	if o.reference {
		own, err := s.testReference(o)
		if err != nil {
			return err
		}
		fmt.Println("\nThe same tests with Kubernetes' own server:")
		own.print(os.Stdout, nil)
	}
	return r.verdict(known, o.run != "")
}
