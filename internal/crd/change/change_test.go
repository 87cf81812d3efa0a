package change

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write what the tests find into testdata")

// Each file of testdata has an old and a new definition, and what is said about them.
func TestCompare(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil || len(archive.Files) != 3 {
				t.Fatal(len(archive.Files), err)
			}
			old, now, want := parse(t, archive.Files[0].Data), parse(t, archive.Files[1].Data), &archive.Files[2]
			var got bytes.Buffer
			if err := WriteText(&got, CompareAll(old, now)); err != nil {
				t.Fatal(err)
			}
			if *update {
				want.Data = got.Bytes()
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			for _, same := range CompareAll(now, now) {
				if len(same.Findings) > 0 {
					t.Errorf("differs from itself: %v", same.Findings)
				}
			}
		})
	}
}

func parse(t *testing.T, text []byte) []*v1.CustomResourceDefinition {
	t.Helper()
	d := &v1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(text, d); err != nil {
		t.Fatal(err)
	}
	return []*v1.CustomResourceDefinition{d}
}
