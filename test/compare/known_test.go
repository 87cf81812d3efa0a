package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/compare/judge"
)

// Each reason in the lists is a row of docs/differences.md.
func TestKnown(t *testing.T) {
	rows := rows(t, "../../docs/differences.md")
	for _, list := range []string{"known.txt", "audit.txt"} {
		known, err := judge.ReadKnown(list)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range known {
			if !slices.Contains(rows, e.Because) {
				t.Errorf("%s: docs/differences.md has no row %q", list, e.Because)
			}
		}
	}
}

// rows returns the first cell of each row of the tables in a document.
func rows(t *testing.T, path string) (out []string) {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if cells := strings.Split(line, " | "); len(cells) > 1 {
			out = append(out, strings.TrimPrefix(cells[0], "| "))
		}
	}
	return out
}
