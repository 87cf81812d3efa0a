package known

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const list = `
# About a.
fail a it is not there yet
  says no answer
flaky b a pod may be faster
skip c it never ends
both d there is no network
`

func read(t *testing.T, text string) (List, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "known.txt")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(file)
}

func TestRead(t *testing.T) {
	l, err := read(t, list)
	if err != nil || len(l) != 4 || l["a"].Says[0] != "no answer" || l["b"].Reason != "a pod may be faster" {
		t.Errorf("%v, %v", l, err)
	}
	for _, wrong := range []string{"fail a", "maybe a it fails", "fail a why\nskip a why"} {
		if _, err := read(t, wrong); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

// The list and the results have to agree, in both directions.
func TestVerdict(t *testing.T) {
	l, err := read(t, list)
	if err != nil {
		t.Fatal(err)
	}
	right := Run{{Name: "a", Said: "no answer"}, {Name: "b", Passed: true}, {Name: "d"}, {Name: "e", Passed: true}, {Name: "f", Skipped: true}}
	if err := l.Verdict(right, false); err != nil {
		t.Error(err)
	}
	for want, run := range map[string]Run{
		"e fails":          {{Name: "e"}},
		"a passes":         {{Name: "a", Passed: true}},
		"a fails in a way": {{Name: "a", Said: "on fire"}},
	} {
		if err := l.Verdict(run, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", run, err)
		}
	}
	if err := l.Verdict(right[1:], false); err == nil || !strings.Contains(err.Error(), "there is no such test") {
		t.Errorf("a is missing: %v", err)
	}
}
