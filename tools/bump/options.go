package main

import (
	"go/ast"
	"regexp"
	"strings"
)

// adder matches the methods of a flag set that add a flag.
var adder = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*VarP?$|^VarP?$|^VarPF$`)

// flagPackages have the flags of kube-apiserver.
func flagPackages() []string {
	return []string{
		"k8s.io/kubernetes/cmd/kube-apiserver", "k8s.io/kubernetes/pkg/kubeapiserver/options", "k8s.io/kubernetes/pkg/controlplane/apiserver/options",
		"k8s.io/apiserver/pkg", "k8s.io/component-base", "k8s.io/kube-aggregator/pkg", "k8s.io/apiextensions-apiserver/pkg",
	}
}

// readFlags returns the flags: type and default, the usage, and whether they are deprecated.
func readFlags(s *source) (facts, error) {
	out, deprecated, constants := facts{}, map[string]string{}, map[*pkg]map[string]string{}
	err := s.inspect(flagPackages(), func(p *pkg, _ *ast.File, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return
		}
		if method.Sel.Name == "MarkDeprecated" && len(call.Args) == 2 {
			if name, ok := literal(call.Args[0]); ok {
				deprecated[name] = "deprecated"
			}
			return
		}
		if !adder.MatchString(method.Sel.Name) || len(call.Args) < 3 {
			return
		}
		name, ok := literal(call.Args[1])
		if !ok {
			if constants[p] == nil {
				constants[p] = p.constants()
			}
			name = constants[p][last(call.Args[1])]
		}
		if name == "" || strings.ContainsAny(name, " _") {
			return
		}
		f := fact{at: p.at(call.Pos()), parts: []string{strings.TrimSuffix(method.Sel.Name, "Var")}}
		for _, arg := range call.Args[2:] {
			f.parts = append(f.parts, strings.Join(strings.Fields(p.text(arg)), " "))
		}
		out[name] = f
	})
	for name := range deprecated {
		if f, ok := out[name]; ok {
			f.parts = append(f.parts, "deprecated")
			out[name] = f
		}
	}
	return out, err
}

// inspect visits the nodes of all packages below some import paths.
func (s *source) inspect(roots []string, visit func(*pkg, *ast.File, ast.Node)) error {
	for _, root := range roots {
		packages, err := s.below(root)
		if err != nil {
			return err
		}
		for _, p := range packages {
			for _, file := range p.files {
				ast.Inspect(file, func(n ast.Node) bool {
					visit(p, file, n)
					return true
				})
			}
		}
	}
	return nil
}
