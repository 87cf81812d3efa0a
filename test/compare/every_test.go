package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/test/compare/judge"
)

// The log of a report contains its summary.
func TestSummary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	one := judge.Signature{Request: "get", Resource: "things", Place: "code", Theirs: "200", Ours: "404"}
	r := &Report{out: f, Sent: map[string]int{"get": 2, "put": 3}, Sequences: 4, Found: 1,
		Unknown: map[judge.Signature]int{one: 1}, Known: judge.Known{{Seen: 1}, {Signature: one, Often: 1}}}
	r.Print()
	const want = "4 sequences, 5 requests, 1 differences; listed classes: 1 seen of 2, 1 gone; not listed: 1; once only: 0; forgotten by one: 0"
	if got := summary(path); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := summary(path + ".none"); got != "" {
		t.Errorf("%q of no log", got)
	}
}
