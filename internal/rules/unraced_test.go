package rules

import (
	"bytes"
	"go/ast"
	"go/build"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// allocationsTarget is the command of make allocations: its packages and its pattern.
var allocationsTarget = regexp.MustCompile(`(?m)^allocations:.*\n\t\$\(GO\) test ((?:\./\S+ )+)(?:\\\n\t+)?-run '([^']+)' `)

// The gate runs make test with the race detector. Test files with the constraint !race are left out there: make
// allocations must run their tests.
func TestUnracedTestsRun(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	m := allocationsTarget.FindSubmatch(makefile)
	if m == nil {
		t.Fatal("the Makefile has no target allocations with packages and a pattern")
	}
	packages, pattern := strings.Fields(string(m[1])), regexp.MustCompile(strings.ReplaceAll(string(m[2]), "$$", "$"))
	gate, err := os.ReadFile(filepath.Join(top, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(gate, []byte("\nmake allocations\n")) {
		t.Error(".ci/run does not run make allocations, and make test RACE=1 leaves out the test files with the constraint !race")
	}
	found := 0
	for _, f := range goFiles(t) {
		if !f.isTest() || !unraced(t, f.name) {
			continue
		}
		for _, name := range testNames(f.syntax) {
			found++
			if !slices.Contains(packages, "./"+f.folder()) || !pattern.MatchString(name) {
				t.Errorf("%s: the gate does not run %s, because the file has the constraint !race: add it to the target allocations of the Makefile", f.name, name)
			}
		}
	}
	if found == 0 {
		t.Error("no test file has the constraint !race: remove the target allocations")
	}
}

// unraced reports whether go test leaves out a file with the race detector, and not without it.
func unraced(t *testing.T, name string) bool {
	t.Helper()
	dir, base := path.Split(name)
	in := func(tags ...string) bool {
		context := build.Default
		context.BuildTags = tags
		match, err := context.MatchFile(filepath.Join(top, filepath.FromSlash(dir)), base)
		if err != nil {
			t.Fatal(err)
		}
		return match
	}
	return in() && !in("race")
}

// testNames returns the functions of a test file that go test -run selects.
func testNames(file *ast.File) (names []string) {
	for _, d := range file.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if ok && fn.Recv == nil && selectable.MatchString(fn.Name.Name) && fn.Name.Name != "TestMain" {
			names = append(names, fn.Name.Name)
		}
	}
	return names
}

var selectable = regexp.MustCompile(`^(Test|Fuzz|Example)([^a-z]|$)`)
