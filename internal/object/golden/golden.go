// Package golden runs tests whose data is in txtar archives: the input and the expected output.
// The flag -update replaces the expected output by the actual one.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the tests find into testdata")

// An Archive is the data of one test.
type Archive struct{ *txtar.Archive }

// Each runs a test for each archive whose path matches a pattern. At least one must match.
func Each(t *testing.T, pattern string, test func(t *testing.T, a *Archive)) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			at, err := filepath.Abs(file) // a test may change the directory
			if err != nil {
				t.Fatal(err)
			}
			archive, err := txtar.ParseFile(at)
			if err != nil {
				t.Fatal(err)
			}
			test(t, &Archive{archive})
			if *update {
				if err := os.WriteFile(at, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// Check compares a test's output with the expected output in a file of its archive.
func Check(t *testing.T, want *txtar.File, got string) {
	t.Helper()
	if *update {
		want.Data = []byte(got)
	}
	if diff := cmp.Diff(string(want.Data), got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", want.Name, diff)
	}
}

// Options returns the last line of the comment if it is a JSON object, and nil if there is none.
func (a *Archive) Options() []byte {
	comment := strings.TrimSpace(string(a.Comment))
	last := comment[strings.LastIndex(comment, "\n")+1:]
	if !strings.HasPrefix(last, "{") {
		return nil
	}
	return []byte(last)
}
