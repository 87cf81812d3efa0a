package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anykind/anykind/test/kubernetes/known"
	"github.com/anykind/anykind/test/kubernetes/published"
)

// Sections that use kubectl, kube-controller-manager and the server.
func TestSample(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts etcd, a server and kube-controller-manager")
	}
	here, err := published.Folder()
	if err != nil {
		t.Fatal(err)
	}
	list, err := known.Read(filepath.Join(here, "cmd", "known.txt"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := build()
	if err != nil {
		t.Fatal(err)
	}
	const what = "kubectl_version assert_categories create_secret kubectl_create_filter"
	ours, err := runSuite(options{what: what, timeout: 5 * time.Minute}, "anykind", t.TempDir(), p, p.anykind)
	if err != nil {
		t.Fatal(err)
	}
	if len(ours) != len(strings.Fields(what)) {
		t.Errorf("%d sections ran", len(ours))
	}
	if err := list.Verdict(ours, true); err != nil {
		for _, r := range ours {
			t.Log(r.Said)
		}
		t.Error(err)
	}
}

// A section ends at its marker, also in the middle of a line.
func TestSections(t *testing.T) {
	s := &sections{dir: t.TempDir()}
	err := s.read(strings.NewReader(`setting up
Recording: record_command_canary
+++ exit code: 1
Recording: run_a_tests
green+++ exit code: 0
between
Recording: run_b_tests
bad
red+++ exit code: 1
FAILED TESTS: run_b_tests,
`))
	if err != nil || !s.whole || len(s.run) != 2 {
		t.Fatalf("%v, %t, %v", err, s.whole, s.run)
	}
	if a, b := s.run[0], s.run[1]; a.Name != "run_a_tests" || !a.Passed || b.Name != "run_b_tests" || b.Passed || !strings.Contains(b.Said, "bad\n") {
		t.Errorf("%v, %v", a, b)
	}
}
