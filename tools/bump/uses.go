package main

import (
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// A use is an exported name of a Kubernetes package in our code.
type use struct{ pkg, name string }

// uses returns the places of names of Kubernetes packages in our code.
func (t *tree) uses(s *source) map[use][]place {
	out := map[use][]place{}
	set := token.NewFileSet()
	for _, f := range t.files {
		if filepath.Ext(f.name) != ".go" || strings.Contains(f.name, "/testdata/") {
			continue
		}
		file, err := parser.ParseFile(set, f.name, f.data, parser.SkipObjectResolution)
		if err != nil {
			continue // the compiler will say more
		}
		imports := s.imports(file)
		ast.Inspect(file, func(n ast.Node) bool {
			selector, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := selector.X.(*ast.Ident); ok && s.module(imports[x.Name]) != "" {
				u := use{imports[x.Name], selector.Sel.Name}
				out[u] = append(out[u], place{file: f.name, line: set.Position(n.Pos()).Line})
			}
			return true
		})
	}
	return out
}

// exports returns the exported names of a package: the signature of a function, "type" with the members of an
// interface, and the kind of others.
func (p *pkg) exports() facts {
	out := facts{}
	if p == nil {
		return out
	}
	p.decls(func(d ast.Decl, _ []string) {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				out[d.Name.Name] = fact{parts: []string{p.signature(d.Type)}}
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						out[name.Name] = fact{parts: []string{"value"}}
					}
				case *ast.TypeSpec:
					out[spec.Name.Name] = fact{parts: append([]string{"type"}, p.members(spec.Type)...)}
				}
			}
		}
	})
	return out
}

// signature returns the types of parameters and results.
func (p *pkg) signature(f *ast.FuncType) string {
	list := func(fields *ast.FieldList) (out []string) {
		if fields == nil {
			return nil
		}
		for _, field := range fields.List {
			for range max(1, len(field.Names)) {
				out = append(out, p.text(field.Type))
			}
		}
		return out
	}
	return "func(" + strings.Join(list(f.Params), ", ") + ") (" + strings.Join(list(f.Results), ", ") + ")"
}

// members returns the methods of an interface, and the exported fields of a struct.
func (p *pkg) members(of ast.Expr) (out []string) {
	switch of := of.(type) {
	case *ast.InterfaceType:
		for _, m := range of.Methods.List {
			if f, ok := m.Type.(*ast.FuncType); ok && len(m.Names) == 1 {
				out = append(out, "method "+m.Names[0].Name+strings.TrimPrefix(p.signature(f), "func"))
			}
		}
	case *ast.StructType:
		for _, f := range of.Fields.List {
			for _, name := range f.Names {
				if name.IsExported() {
					out = append(out, "field "+name.Name+" "+p.text(f.Type))
				}
			}
		}
	}
	return out
}

// changedUses returns the names in our code that a release lacks or has otherwise. A new field of a struct
// breaks nothing.
func changedUses(t *tree, old, new *source) (out []finding, err error) {
	exports := map[*source]map[string]facts{old: {}, new: {}}
	of := func(s *source, importPath string) (facts, error) {
		if exports[s][importPath] == nil {
			p, err := s.pkg(importPath)
			if err != nil {
				return nil, err
			}
			exports[s][importPath] = p.exports()
		}
		return exports[s][importPath], nil
	}
	for u, places := range t.uses(old) {
		before, err := of(old, u.pkg)
		if err != nil {
			return nil, err
		}
		after, err := of(new, u.pkg)
		if err != nil {
			return nil, err
		}
		was, known := before[u.name]
		if !known || new.module(u.pkg) == "" {
			continue
		}
		work := ""
		if is, there := after[u.name]; !there {
			work = "removed"
		} else if lost := without(was.parts, is.parts); len(lost) > 0 {
			work = strings.TrimSuffix("lost "+strings.Join(lost, ", ")+"; has "+strings.Join(without(is.parts, was.parts), ", "), "; has ")
		} else if gained := slices.DeleteFunc(without(is.parts, was.parts), func(s string) bool { return strings.HasPrefix(s, "field ") }); len(gained) > 0 {
			work = "gained " + strings.Join(gained, ", ")
		}
		if work == "" {
			continue
		}
		f := finding{name: u.pkg + "." + u.name + ": " + work}
		for _, p := range places {
			p.work = ""
			f.places = append(f.places, p)
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b finding) int { return cmp.Compare(a.name, b.name) })
	return out, nil
}
