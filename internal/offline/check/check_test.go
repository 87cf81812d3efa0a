package check

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/object/golden"
)

// Each file of testdata has an input and its reports. The last line of its comment has options, if
// they differ from the default.
func TestCheck(t *testing.T) {
	golden.Each(t, "testdata/*.txtar", func(t *testing.T, archive *golden.Archive) {
		o := optionsOf(t, archive)
		t.Chdir(t.TempDir())
		var in []byte
		for _, f := range archive.Files {
			if strings.HasPrefix(f.Name, "want ") {
				continue
			}
			if f.Name == "stdin" {
				in = f.Data
				continue
			}
			writeFile(t, f.Name, f.Data)
		}
		paths := []string{"in"}
		if in != nil {
			paths = []string{"-"}
		}
		report, err := Run(t.Context(), paths, bytes.NewReader(in), o)
		if err != nil {
			t.Fatal(err)
		}
		compare(t, archive, report)
		checkJSON(t, report)
	})
}

// optionsOf returns the options of an archive.
func optionsOf(t *testing.T, archive *golden.Archive) (o Options) {
	t.Helper()
	if text := archive.Options(); text != nil {
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// compare compares a report with the expected one, in each format of the archive.
func compare(t *testing.T, archive *golden.Archive, report *Report) {
	t.Helper()
	writers := map[string]func(*bytes.Buffer) error{
		"text":   func(b *bytes.Buffer) error { return report.WriteText(b) },
		"json":   func(b *bytes.Buffer) error { return report.WriteJSON(b) },
		"yaml":   func(b *bytes.Buffer) error { return report.WriteYAML(b) },
		"diff":   func(b *bytes.Buffer) error { return report.WriteDiff(b) },
		"github": func(b *bytes.Buffer) error { return report.WriteGitHub(b) },
		"sarif":  func(b *bytes.Buffer) error { return report.WriteSARIF(b) },
		"krm":    func(b *bytes.Buffer) error { return report.WriteKRM(b) },
		"junit":  func(b *bytes.Buffer) error { return report.WriteJUnit(b) },
	}
	compared := 0
	for i := range archive.Files {
		want := &archive.Files[i]
		form, ok := strings.CutPrefix(want.Name, "want ")
		if !ok {
			continue
		}
		compared++
		var got bytes.Buffer
		if err := writers[form](&got); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, want, got.String())
	}
	if compared == 0 {
		t.Error("nothing is wanted")
	}
}

// checkJSON checks that the JSON report has all facts of the text.
func checkJSON(t *testing.T, report *Report) {
	t.Helper()
	var out bytes.Buffer
	if err := report.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Results) != len(report.Results) || back.Summary != report.Summary {
		t.Errorf("%d results and %v, want %d and %v", len(back.Results), back.Summary, len(report.Results), report.Summary)
	}
}

func TestNoFile(t *testing.T) {
	if _, err := Run(context.Background(), []string{filepath.Join(t.TempDir(), "nothing")}, nil, Options{}); !os.IsNotExist(err) {
		t.Errorf("%v, want that there is no such file", err)
	}
}
