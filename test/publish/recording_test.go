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
)

var update = flag.Bool("update", false, "write the responses of the reference to internal/builtin/testdata")

// The recordings for the comparison of built-in kinds equal the documents of a kube-apiserver. For
// another version of Kubernetes: raise the versions of the modules, run this with -update, and read
// the diff.
func TestRecording(t *testing.T) {
	if *reference != "start" {
		t.Skip("starts a kube-apiserver: -reference start")
	}
	dir := filepath.Join("..", "..", "internal", "builtin", "testdata", "recorded")
	usual := record(t, theirs(t))
	compareRecorded(t, dir, usual, nil)
	// Groups and versions that are off by default have another folder.
	compareRecorded(t, filepath.Join(dir, "off"), record(t, theirs(t, "--runtime-config=api/all=true")).Beyond(usual), usual)
	// So have kinds that need feature gates.
	gated := record(t, theirs(t, "--runtime-config="+recording.GatedVersions, "--feature-gates="+recording.Gates))
	compareRecorded(t, filepath.Join(dir, "gated"), gated.Beyond(usual), usual)
}

func record(t *testing.T, s *server) recording.Files {
	t.Helper()
	files, err := recording.Record(func(method, path, accept, body string) (int, []byte, error) {
		a := s.send(t, method, path, accept, body, "Content-Type: application/json")
		return a.code, a.body, nil
	}, func(string) bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// compareRecorded compares files with those in a folder, or updates the folder. Equal parts may refer
// to other files.
func compareRecorded(t *testing.T, dir string, files, others recording.Files) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		var text strings.Builder
		if err := files[name].Write(&text, others[name]); err != nil {
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
			t.Errorf("%s is not what the reference says; run this with -update", file)
		}
	}
}
