package main

import (
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// readServed returns the versions and resources that kube-apiserver serves, and those that it does not serve by
// default: the lists of its start, and the resources of each group.
func readServed(s *source) (facts, error) {
	out := facts{}
	p, err := s.pkg("k8s.io/kubernetes/pkg/controlplane")
	if err != nil {
		return nil, err
	}
	if p != nil {
		p.addVersions(out)
	}
	err = s.inspect([]string{"k8s.io/kubernetes/pkg/registry"}, func(p *pkg, _ *ast.File, n ast.Node) {
		if f, ok := n.(*ast.FuncDecl); ok && path.Base(p.path) == "rest" {
			p.addResources(out, f)
		}
	})
	return out, err
}

// addVersions adds the versions in lists of a package.
func (p *pkg) addVersions(out facts) {
	for _, file := range p.files {
		imports := p.src.imports(file)
		for _, d := range file.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok || gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				v := spec.(*ast.ValueSpec)
				for _, value := range v.Values {
					list, ok := value.(*ast.CompositeLit)
					if !ok {
						continue
					}
					for _, e := range list.Elts {
						if name := versionOf(imports, e); name != "" {
							out[name] = fact{parts: []string{v.Names[0].Name}, at: p.at(e.Pos())}
						}
					}
				}
			}
		}
	}
}

// versionOf returns the version of p.SchemeGroupVersion, and the resource of p.SchemeGroupVersion.WithResource.
func versionOf(imports map[string]string, e ast.Expr) string {
	resource := ""
	if call, ok := e.(*ast.CallExpr); ok && len(call.Args) == 1 {
		text, _ := literal(call.Args[0])
		resource = " " + text
		if method, ok := call.Fun.(*ast.SelectorExpr); ok {
			e = method.X
		}
	}
	version, ok := e.(*ast.SelectorExpr)
	if !ok || version.Sel.Name != "SchemeGroupVersion" {
		return ""
	}
	return shortName(imports[last(version.X)]) + resource
}

var storageFunction = regexp.MustCompile(`^(v[0-9a-z]+)Storage$`)

// addResources adds the resources and subresources that a function of a group adds to its storage.
func (p *pkg) addResources(out facts, f *ast.FuncDecl) {
	m := storageFunction.FindStringSubmatch(f.Name.Name)
	if m == nil || f.Body == nil {
		return
	}
	group, resource := path.Base(path.Dir(p.path)), ""
	add := func(name string, pos token.Pos) {
		out[group+"/"+m[1]+" "+name] = fact{parts: []string{"resource"}, at: p.at(pos)}
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if len(n.Lhs) == 1 && last(n.Lhs[0]) == "resource" {
				resource, _ = literal(n.Rhs[0])
				add(resource, n.Pos())
			}
		case *ast.IndexExpr:
			if sum, ok := n.Index.(*ast.BinaryExpr); ok && last(sum.X) == "resource" {
				if rest, ok := literal(sum.Y); ok {
					add(resource+rest, n.Pos())
				}
			}
		}
		return true
	})
}

// readPlugins returns the admission plugins in their order.
func readPlugins(s *source) (facts, error) {
	out := facts{}
	p, err := s.pkg("k8s.io/kubernetes/pkg/kubeapiserver/options")
	if err != nil || p == nil {
		return out, err
	}
	for _, file := range p.files {
		imports := p.src.imports(file)
		ast.Inspect(file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				return true
			}
			list, ok := v.Values[0].(*ast.CompositeLit)
			if !ok || v.Names[0].Name != "AllOrderedPlugins" {
				return true
			}
			before := "the first"
			for _, e := range list.Elts {
				if plugin, ok := e.(*ast.SelectorExpr); ok {
					name := path.Base(imports[last(plugin.X)])
					out[name] = fact{parts: []string{"after " + before}, at: p.at(e.Pos())}
					before = name
				}
			}
			return true
		})
	}
	return out, nil
}

// words returns the names in a text, such as gates, flags and metrics.
func words(text string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}), func(s string) bool { return len(s) < 3 })
}
