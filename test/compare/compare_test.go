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
	for _, store := range []string{"memory", "file", "etcd"} {
		t.Run(store, func(t *testing.T) { compare(t, runResponses, time.Hour, store, "known.txt") })
	}
}

// The same requests have the same audit events, under each of the policies.
func TestCompareAudit(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	compare(t, runAudits, policies*time.Hour, "file", "audit.txt")
}

// compare sends the fixed sequences to servers with a store. list is the file with the known differences.
func compare(t *testing.T, run func(context.Context, Options, servers.Options, *Report) error, limit time.Duration, store, list string) {
	t.Helper()
	known, err := judge.ReadKnown(list)
	if err != nil {
		t.Fatal(err)
	}
	s := servers.Options{Reference: *reference, Store: store, Dir: t.TempDir()}
	s.WithoutControllers()
	report := newReport(known, os.Stdout)
	o := Options{Seed: 1, Count: *sequences, Time: limit, Kinds: generate.All(), Workers: 4}
	if err := run(context.WithoutCancel(t.Context()), o, s, report); err != nil { // Stop, not the context of the test, ends the servers
		t.Fatal(err)
	}
	report.Print()
	if err := report.Verdict(); err != nil {
		t.Error(err)
	}
}
