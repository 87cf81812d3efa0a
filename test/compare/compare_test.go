package main

import (
	"context"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/anykind/anykind/test/compare/generate"
	"github.com/anykind/anykind/test/compare/judge"
	"github.com/anykind/anykind/test/compare/servers"
)

var (
	reference = flag.String("reference", "", "compare with the server of this `kubeconfig`, or with one that is started if it is \"start\"")
	sequences = flag.Uint64("sequences", 400, "how many sequences of requests to send")
)

// The same requests have the same responses, except for known differences. These sequences are fixed;
// `go run .` sends new ones until its time is up.
func TestCompare(t *testing.T) {
	if *reference == "" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	known, err := judge.ReadKnown("known.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []string{"memory", "file", "etcd"} {
		t.Run(store, func(t *testing.T) {
			// Stop, not the context of the test, ends the servers.
			ctx := context.WithoutCancel(t.Context())
			o := servers.Options{Reference: *reference, Store: store, Dir: t.TempDir()}
			o.WithoutControllers()
			pair, err := servers.Start(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			defer pair.Stop()
			report := newReport(known, os.Stdout)
			err = run(ctx, Options{Seed: 1, Count: *sequences, Time: time.Hour, Kinds: generate.All(), Workers: 4}, pair, report)
			if err != nil {
				t.Fatal(err)
			}
			report.Print()
			if err := report.Verdict(); err != nil {
				t.Error(err)
			}
		})
	}
}

// The same requests have the same audit events, under each of the policies.
func TestCompareAudit(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	known, err := judge.ReadKnown("audit.txt")
	if err != nil {
		t.Fatal(err)
	}
	o := servers.Options{Reference: *reference, Store: "file", Dir: t.TempDir()}
	o.WithoutControllers()
	report := newReport(known, os.Stdout)
	err = runAudits(context.WithoutCancel(t.Context()), Options{Seed: 1, Count: *sequences, Time: policies * time.Hour, Kinds: generate.All(), Workers: 4}, o, report)
	if err != nil {
		t.Fatal(err)
	}
	report.Print()
	if err := report.Verdict(); err != nil {
		t.Error(err)
	}
}
