package main

import (
	"os"
	"path/filepath"
	"testing"
)

// Words of tags are added to rows, replace others, and go. Types and fields without a row get one.
func TestWriteRows(t *testing.T) {
	const table = `package k8s.io/api/x/v1 like k8s.io/api/x/v2
# A comment.

Alone
Closed

Item union=type(a:A)
	kind    enum=A,B
	longer  needed gate=Old gated

Only
	gone  list=set
`
	got := writeRows(table, []rowChange{
		{"Item.kind", []string{"enum=A,B,C", "optional"}},
		{"Item.longer", []string{"-gate=Old"}},
		{"Item.a", []string{"items=X,Y", "list=set"}},
		{"Item.value", []string{"default"}},
		{"New.spec", []string{"required"}},
		{"Only.gone", []string{noSuchField}},
		{"Other", []string{"map=atomic"}},
	})
	const want = `package k8s.io/api/x/v1 like k8s.io/api/x/v2
# A comment.

Alone
Closed

Item union=type(a:A)
	a       items=X,Y list=set
	kind    enum=A,B,C optional
	longer  needed

New
	spec  required

Other map=atomic
`
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// A table without changes stays as it is.
func TestWriteRowsKeeps(t *testing.T) {
	for name, text := range realTables(t) {
		if got := writeRows(text, nil); got != text {
			t.Errorf("%s changes:\n%s", name, got)
		}
	}
}

// realTables returns the tables of the tree by file.
func realTables(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(tables), "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	out := map[string]string{}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

// A change of a field of a type in a real table adds no second block of the type.
func TestWriteRowsFindsTypes(t *testing.T) {
	for name, text := range realTables(t) {
		_, blocks := parseBlocks(text)
		for _, b := range blocks {
			_, after := parseBlocks(writeRows(text, []rowChange{{b.name + ".zzz", []string{"required"}}}))
			if len(after) != len(blocks) {
				t.Errorf("%s: %s got another block", name, b.name)
			}
		}
	}
}

// A module with another major version or another host is the same module.
func TestRenames(t *testing.T) {
	modules := renames(
		facts{"example.com/diff/v6": fact{}, "github.com/x/cel": fact{}, "example.com/kept": fact{}, "example.com/gone": fact{}},
		facts{"example.com/diff/v7": fact{}, "cel.dev/cel": fact{}, "example.com/kept": fact{}, "example.com/new": fact{}})
	got := renameImports("import (\n\t\"example.com/diff/v6/merge\"\n\t\"github.com/x/cel\"\n\t\"github.com/x/celery\"\n\t\"example.com/kept/a\"\n)", modules)
	want := "import (\n\t\"example.com/diff/v7/merge\"\n\t\"cel.dev/cel\"\n\t\"github.com/x/celery\"\n\t\"example.com/kept/a\"\n)"
	if got != want || len(modules) != 2 {
		t.Errorf("%s with %v", got, modules)
	}
}
