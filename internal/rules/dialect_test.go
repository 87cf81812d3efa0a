package rules

import (
	"go/ast"
	"go/token"
	"testing"
)

// The Dialect decides how a kind responds. Only encoding and decoding of Go values may depend on
// whether it has a Go type.
func TestNobodyAsksWhetherAKindIsBuiltIn(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.inProduct() || f.isTest() || f.folder() == "internal/object/codec" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			b, ok := n.(*ast.BinaryExpr)
			if !ok || b.Op != token.EQL && b.Op != token.NEQ {
				return true
			}
			s, ok := b.X.(*ast.SelectorExpr)
			if y, isIdent := b.Y.(*ast.Ident); ok && isIdent && s.Sel.Name == "New" && y.Name == "nil" && !inHasGoType(f, n) {
				t.Errorf("%s:%d: give the difference a name in resource.Dialect and ask for that", f.name, f.line(n.Pos()))
			}
			return true
		})
	}
}

// inHasGoType reports whether n is in the method of that name of resource.Version.
func inHasGoType(f *file, n ast.Node) bool {
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.Name == "HasGoType" && fn.Pos() <= n.Pos() && n.End() <= fn.End() {
			return f.folder() == "internal/object/resource"
		}
	}
	return false
}
