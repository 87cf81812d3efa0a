package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A source has the source of the modules of one release. It parses packages, and compiles nothing: a report
// needs neither the toolchain of the release nor a consistent set of modules.
type source struct {
	dirs     map[string]string // by path of the module
	set      *token.FileSet
	packages map[string]*pkg
}

func newSource(dirs map[string]string) *source {
	return &source{dirs: dirs, set: token.NewFileSet(), packages: map[string]*pkg{}}
}

// A pkg is a parsed package, without tests.
type pkg struct {
	path  string
	name  string
	files []*ast.File
	src   *source
}

// module returns the module of an import path, "" for none.
func (s *source) module(importPath string) string {
	for m := importPath; m != "." && m != "/"; m = path.Dir(m) {
		if s.dirs[m] != "" {
			return m
		}
	}
	return ""
}

// dir returns the folder of an import path, "" for none.
func (s *source) dir(importPath string) string {
	m := s.module(importPath)
	if m == "" {
		return ""
	}
	return filepath.Join(s.dirs[m], filepath.FromSlash(strings.TrimPrefix(importPath, m)))
}

// pkg parses a package. It returns nil if there is none.
func (s *source) pkg(importPath string) (*pkg, error) {
	if p, ok := s.packages[importPath]; ok {
		return p, nil
	}
	s.packages[importPath] = nil
	dir := s.dir(importPath)
	if dir == "" {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	p := &pkg{path: importPath, src: s}
	for _, e := range entries {
		if e.IsDir() || !isSource(e.Name()) {
			continue
		}
		// A newer release may have syntax that this parser does not know: it parses the rest of the file.
		file, err := parser.ParseFile(s.set, filepath.Join(dir, e.Name()), nil, parser.ParseComments|parser.SkipObjectResolution)
		if file == nil {
			return nil, err
		}
		p.files = append(p.files, file)
		p.name = file.Name.Name
	}
	if len(p.files) > 0 {
		s.packages[importPath] = p
	}
	return s.packages[importPath], nil
}

// isSource reports whether a file has code that people write, or generated validation and defaults.
func isSource(name string) bool {
	switch {
	case !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".pb.go"),
		strings.HasSuffix(name, "_swagger_doc_generated.go"), strings.HasSuffix(name, "_windows.go"), strings.HasSuffix(name, "_darwin.go"):
		return false
	case strings.HasPrefix(name, "zz_generated"):
		return name == "zz_generated.defaults.go"
	}
	return true
}

// below parses all packages below an import path, and that one.
func (s *source) below(importPath string) (out []*pkg, err error) {
	root := s.dir(importPath)
	if root == "" {
		return nil, nil
	}
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return fs.SkipDir
		}
		if err != nil || !e.IsDir() {
			return err
		}
		switch e.Name() {
		case "testdata", "test", "testing", "fake", "fuzzer", "install", "apitesting", "clientset", "informers", "listers", "applyconfiguration":
			return fs.SkipDir
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		p, err := s.pkg(path.Join(importPath, filepath.ToSlash(rel)))
		if p != nil {
			out = append(out, p)
		}
		return err
	})
	return out, err
}

// at returns a position as a path in its module and a line.
func (p *pkg) at(pos token.Pos) string {
	position := p.src.set.Position(pos)
	return fmt.Sprintf("%s/%s:%d", p.path, filepath.Base(position.Filename), position.Line)
}

// text returns a node as Go text, without comments.
func (p *pkg) text(node any) string {
	var out bytes.Buffer
	if err := printer.Fprint(&out, p.src.set, node); err != nil {
		return err.Error()
	}
	return out.String()
}

// decls yields the top-level declarations with the tags above each: comment lines that begin with "+".
func (p *pkg) decls(yield func(d ast.Decl, tags []string)) {
	for _, file := range p.files {
		from := file.Name.End()
		for _, d := range file.Decls {
			yield(d, tagsBetween(file, from, d.Pos()))
			from = d.End()
		}
	}
}

// tagsBetween returns the tags in comments between two positions. Those of one declaration can be in several
// comments, with empty lines between them.
func tagsBetween(file *ast.File, from, to token.Pos) (tags []string) {
	first, _ := slices.BinarySearchFunc(file.Comments, from, func(c *ast.CommentGroup, at token.Pos) int { return int(c.Pos() - at) })
	for _, group := range file.Comments[first:] {
		if group.Pos() >= to {
			break
		}
		for _, c := range group.List {
			text := strings.TrimSpace(strings.TrimPrefix(c.Text, "//"))
			if tag, ok := strings.CutPrefix(text, "+"); ok && tag != "" && tag[0] != '-' && !strings.HasPrefix(tag, "build ") {
				tags = append(tags, strings.TrimSpace(tag))
			}
		}
	}
	return tags
}

// constants returns the text constants of a package by name.
func (p *pkg) constants() map[string]string {
	out := map[string]string{}
	p.decls(func(d ast.Decl, _ []string) {
		gen, ok := d.(*ast.GenDecl)
		if !ok || gen.Tok != token.CONST && gen.Tok != token.VAR {
			return
		}
		for _, spec := range gen.Specs {
			v := spec.(*ast.ValueSpec)
			for i, name := range v.Names {
				if i < len(v.Values) {
					if text, ok := literal(v.Values[i]); ok {
						out[name.Name] = text
					}
				}
			}
		}
	})
	return out
}

// literal returns the value of a text literal, or of a sum or a conversion of literals.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.ParenExpr:
		return literal(e.X)
	case *ast.BinaryExpr:
		left, ok := literal(e.X)
		right, also := literal(e.Y)
		return left + right, ok && also && e.Op == token.ADD
	case *ast.CallExpr:
		if len(e.Args) == 1 && (last(e.Fun) == "Feature" || ast.IsExported(last(e.Fun))) {
			return literal(e.Args[0]) // a conversion
		}
	}
	return "", false
}

// last returns the last name of an identifier or a selector: b for a.b.
func last(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.StarExpr:
		return last(e.X)
	}
	return ""
}

// imports returns the import paths of a file by the name in its code.
func (s *source) imports(file *ast.File) map[string]string {
	out := map[string]string{}
	for _, i := range file.Imports {
		importPath, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(importPath)
		if i.Name != nil {
			name = i.Name.Name
		} else if p, err := s.pkg(importPath); err == nil && p != nil {
			name = p.name
		}
		out[name] = importPath
	}
	return out
}
