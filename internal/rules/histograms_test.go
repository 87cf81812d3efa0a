package rules

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// classic are the folders whose histograms kube-apiserver creates before it applies its gates.
var classic = []string{
	"internal/access/authn", "internal/access/authz/webhook", "internal/admission", "internal/controller", "internal/network",
	"internal/registry/convert", "internal/store/encrypt",
}

// The package histogram creates all other histograms, since they depend on a gate.
func TestHistogramsDependOnTheirGate(t *testing.T) {
	for _, f := range goFiles(t) {
		in := func(folder string) bool { return strings.HasPrefix(f.folder()+"/", folder+"/") }
		if !f.inProduct() || f.isTest() || in("internal/object/histogram") || slices.ContainsFunc(classic, in) {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if of, isIdent := s.X.(*ast.Ident); isIdent && of.Name == "prometheus" && strings.HasPrefix(s.Sel.Name, "NewHistogram") {
				t.Errorf("%s:%d: create the histogram with the package histogram", f.name, f.line(n.Pos()))
			}
			return true
		})
	}
}
