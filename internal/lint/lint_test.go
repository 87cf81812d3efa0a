package lint

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what the tests find into testdata")

// Each file of testdata is an input and what is written about it.
func TestLint(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal("no test data", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			part := func(name string) *txtar.File {
				i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == name })
				return &archive.Files[i]
			}
			results, err := Read(context.Background(), "crd.yaml", bytes.NewReader(part("crd.yaml").Data))
			var got bytes.Buffer
			if err := WriteText(&got, results); err != nil {
				t.Fatal(err)
			}
			if err != nil {
				got.WriteString(err.Error() + "\n")
			}
			want := part("text")
			if *update {
				want.Data = got.Bytes()
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(string(want.Data), got.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			checkJSON(t, results)
		})
	}
}

// checkJSON checks that programs learn as much as people.
func checkJSON(t *testing.T, results []Result) {
	t.Helper()
	var out bytes.Buffer
	if err := WriteJSON(&out, results); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Results  []Result
		Problems int
	}
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Results) != len(results) || back.Problems != Problems(results) {
		t.Errorf("%d results with %d problems, want %d and %d", len(back.Results), back.Problems, len(results), Problems(results))
	}
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	archive, err := txtar.ParseFile("testdata/accepted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.yaml", "sub/b.yml", "sub/ignored.txt"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, archive.Files[0].Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	results, err := Files(context.Background(), []string{dir, "-"}, bytes.NewReader(archive.Files[0].Data))
	if err != nil || len(results) != 3 {
		t.Errorf("%d results and %v, want 3", len(results), err)
	}
	if _, err := Files(context.Background(), []string{filepath.Join(dir, "nothing")}, nil); !os.IsNotExist(err) {
		t.Errorf("%v, want that there is no such file", err)
	}
}
