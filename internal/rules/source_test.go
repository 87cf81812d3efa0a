package rules

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// top is the path of the repository's top folder from this one.
const top = "../.."

// module is the import path of the product.
const module = "github.com/anykind/anykind"

// A file is a file of the repository.
type file struct {
	name string // with slashes, from the top
	data []byte

	// of Go files only
	set    *token.FileSet
	syntax *ast.File
}

func (f *file) isGo() bool   { return strings.HasSuffix(f.name, ".go") }
func (f *file) isTest() bool { return strings.HasSuffix(f.name, "_test.go") }

// lines returns the number of lines.
func (f *file) lines() int { return strings.Count(string(f.data), "\n") }

// line returns the line number of a position.
func (f *file) line(p token.Pos) int { return f.set.Position(p).Line }

// inProduct reports whether the file belongs to the product's module, and not to a separate one:
// external tests, tools, the test kit.
func (f *file) inProduct() bool {
	return !strings.HasPrefix(f.name, "test/") && !strings.HasPrefix(f.name, "tools/") &&
		!strings.HasPrefix(f.name, "envtest/")
}

// folder returns the folder of the file, "." for the top.
func (f *file) folder() string { return path.Dir(f.name) }

// imports returns the import paths of a Go file.
func (f *file) imports() []string {
	var paths []string
	for _, i := range f.syntax.Imports {
		p, _ := strconv.Unquote(i.Path.Value)
		paths = append(paths, p)
	}
	return paths
}

// readOnce reads the repository once for all rules.
var readOnce = sync.OnceValues(readAll)

// files returns the files of the repository, without ignored folders.
func files(t *testing.T) []*file {
	t.Helper()
	all, err := readOnce()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func goFiles(t *testing.T) []*file {
	t.Helper()
	var list []*file
	for _, f := range files(t) {
		if f.isGo() {
			list = append(list, f)
		}
	}
	return list
}

func readAll() ([]*file, error) {
	var all []*file
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(top, p)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		if d.IsDir() {
			if name != "." && (strings.HasPrefix(d.Name(), ".") && name != ".ci" || d.Name() == "testdata" || d.Name() == "node_modules" || d.Name() == "anykind-data") {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go", ".md", ".txtar", ".mod":
		default:
			return nil
		}
		f := &file{name: name}
		if f.data, err = os.ReadFile(p); err != nil {
			return err
		}
		if f.isGo() {
			f.set = token.NewFileSet()
			f.syntax, err = parser.ParseFile(f.set, name, f.data, parser.ParseComments|parser.SkipObjectResolution)
		}
		all = append(all, f)
		return err
	})
	return all, err
}
