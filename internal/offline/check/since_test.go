package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/golden"
	"github.com/anykind/anykind/internal/offline/revision"
)

// Each file of testdata/since has a commit in old, a working tree in new, and the reports of the
// difference.
func TestSince(t *testing.T) {
	golden.Each(t, "testdata/since/*.txtar", func(t *testing.T, archive *golden.Archive) {
		o := optionsOf(t, archive)
		t.Chdir(t.TempDir())
		git(t, "init", "-q")
		for _, f := range archive.Files {
			if name, ok := strings.CutPrefix(f.Name, "old/"); ok {
				writeFile(t, name, f.Data)
			}
		}
		git(t, "add", ".")
		git(t, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "old")
		git(t, "rm", "-q", "-r", ".")
		for _, f := range archive.Files {
			if name, ok := strings.CutPrefix(f.Name, "new/"); ok {
				writeFile(t, name, f.Data)
			}
		}
		report, err := Since(t.Context(), []string{"."}, revision.Range{Old: "HEAD"}, o)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, archive, report)
		checkJSON(t, report)
	})
}

func git(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func writeFile(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
