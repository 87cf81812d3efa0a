package rules

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// A package has no mutable state: a value that a caller creates holds it. The rule finds
// package-level variables that a function writes, and those that are locks or counters.
func TestPackagesHaveNoState(t *testing.T) {
	byFolder := map[string][]*file{}
	for _, f := range goFiles(t) {
		if f.inProduct() && !f.isTest() {
			byFolder[f.folder()] = append(byFolder[f.folder()], f)
		}
	}
	for _, list := range byFolder {
		variables := map[string]bool{}
		for _, f := range list {
			for _, v := range packageVariables(f) {
				for _, name := range v.Names {
					variables[name.Name] = true
				}
				if mutableType(v.Type) {
					t.Errorf("%s:%d: %s is state of the whole process: make it part of a value", f.name, f.line(v.Pos()), v.Names[0].Name)
				}
			}
		}
		for _, f := range list {
			for _, d := range f.syntax.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					for _, id := range writes(fn, variables) {
						t.Errorf("%s:%d: %s writes to %s, which is state of the whole process: make it part of a value", f.name, f.line(id.Pos()), fn.Name.Name, id.Name)
					}
				}
			}
		}
	}
}

func packageVariables(f *file) []*ast.ValueSpec {
	var specs []*ast.ValueSpec
	for _, d := range f.syntax.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, s := range g.Specs {
				specs = append(specs, s.(*ast.ValueSpec))
			}
		}
	}
	return specs
}

// mutableType reports whether a type is mutable by nature.
func mutableType(e ast.Expr) bool {
	if i, ok := e.(*ast.IndexExpr); ok {
		e = i.X
	}
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && (x.Name == "atomic" || x.Name == "sync" && s.Sel.Name != "Pool")
}

// writes returns the places where fn writes to one of the variables. A name that fn declares
// anywhere counts as its own.
func writes(fn *ast.FuncDecl, variables map[string]bool) []*ast.Ident {
	own := map[string]bool{}
	var written []*ast.Ident
	write := func(e ast.Expr) {
		if id := root(e); id != nil && id.Name != "_" && variables[id.Name] {
			written = append(written, id)
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				own[name.Name] = true
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declare(own, n.Key, n.Value)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				declare(own, n.Lhs...)
				return true
			}
			for _, e := range n.Lhs {
				write(e)
			}
		case *ast.IncDecStmt:
			write(n.X)
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.Ident); ok && (f.Name == "delete" || f.Name == "clear") {
				write(n.Args[0])
			}
		}
		return true
	})
	var found []*ast.Ident
	for _, id := range written {
		if !own[id.Name] {
			found = append(found, id)
		}
	}
	return found
}

func declare(own map[string]bool, list ...ast.Expr) {
	for _, e := range list {
		if id, ok := e.(*ast.Ident); ok {
			own[id.Name] = true
		}
	}
}

// root returns the first operand of x, x.f, x[i] and *x.
func root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil
		}
	}
}

// The rule finds writes to variables, and nothing else.
func TestWritesToVariablesAreFound(t *testing.T) {
	const source = `package p
var count int
var table = map[string]int{}
func bad() { count++; table["a"] = 1; delete(table, "a") }
func good(count int) { count++; table := map[string]int{}; table["a"] = 1; _ = len(table) }
`
	f := parse(t, source)
	variables := map[string]bool{"count": true, "table": true}
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		want := 0
		if strings.HasPrefix(fn.Name.Name, "bad") {
			want = 3
		}
		if got := len(writes(fn, variables)); got != want {
			t.Errorf("%s: found %d writes, want %d", fn.Name.Name, got, want)
		}
	}
}
