package rules

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var sequentialList = regexp.MustCompile(`(?m)^SEQUENTIAL +=((?:.*\\\n)*.*)$`)

// The gate runs the packages of SEQUENTIAL in the Makefile without the race detector. They start no goroutines, and
// neither do their tests.
func TestSequentialPackagesStartNoGoroutines(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	list := sequentialList.FindSubmatch(makefile)
	if list == nil {
		t.Fatal("the Makefile has no SEQUENTIAL")
	}
	found := map[string]bool{}
	for _, p := range strings.Fields(strings.ReplaceAll(string(list[1]), "\\", "")) {
		found[path.Join("internal", p)] = false
	}
	for _, f := range goFiles(t) {
		if _, sequential := found[f.folder()]; !sequential {
			continue
		}
		found[f.folder()] = true
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if startsGoroutine(n) {
				t.Errorf("%s:%d starts a goroutine: remove the package from SEQUENTIAL in the Makefile", f.name, f.line(n.Pos()))
			}
			return true
		})
	}
	for p, exists := range found {
		if !exists {
			t.Errorf("SEQUENTIAL has %s, which has no files", p)
		}
	}
}

// startsGoroutine reports whether a node is a go statement, or a call of Go of a group, or of a function of testing
// that runs tests in parallel.
func startsGoroutine(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		return true
	case *ast.CallExpr:
		called, ok := n.Fun.(*ast.SelectorExpr)
		return ok && (called.Sel.Name == "Go" || called.Sel.Name == "Parallel" || called.Sel.Name == "RunParallel")
	}
	return false
}
