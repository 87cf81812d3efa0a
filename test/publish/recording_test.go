package publish

import (
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/builtin/recording"
	"github.com/anykind/anykind/internal/openapi"
)

var update = flag.Bool("update", false, "write what the reference says to internal/builtin/testdata")

// What the built-in kinds are compared with is what a kube-apiserver says. For another
// version of Kubernetes: raise the versions of the modules, run this with -update, and read
// the diff.
func TestRecording(t *testing.T) {
	if *reference == "" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	theirs := theirs(t)
	files, err := recording.Record(func(path, accept string) (int, []byte, error) {
		a := theirs.get(t, path, accept)
		return a.code, a.body, nil
	}, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join("..", "..", "internal", "builtin", "testdata", "v"+openapi.Kubernetes)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var text strings.Builder
		if err := files[name].Write(&text); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if *update {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		recorded, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(recorded) != text.String() {
			t.Errorf("%s is not what the reference says; run this with -update", name)
		}
	}
}
