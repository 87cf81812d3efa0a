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
			report, err := run(ctx, Options{Seed: 1, Count: *sequences, Time: time.Hour, Kinds: generate.All(), Workers: 4}, pair, known, os.Stdout)
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
