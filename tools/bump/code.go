package main

import (
	"go/ast"
	"path"
	"strings"
)

// codePackages have the code whose behaviour clients of kube-apiserver notice.
func codePackages() []string {
	return []string{
		"k8s.io/kubernetes/pkg/apis", "k8s.io/kubernetes/pkg/api", "k8s.io/kubernetes/pkg/registry", "k8s.io/kubernetes/plugin/pkg",
		"k8s.io/kubernetes/pkg/printers/internalversion", "k8s.io/kubernetes/pkg/kubeapiserver", "k8s.io/kubernetes/pkg/controlplane",
		"k8s.io/kubernetes/pkg/serviceaccount", "k8s.io/kubernetes/pkg/quota", "k8s.io/kubernetes/pkg/kubelet/client",
		"k8s.io/apimachinery/pkg/api", "k8s.io/apimachinery/pkg/util/validation", "k8s.io/apimachinery/pkg/apis/meta/v1",
		"k8s.io/apiserver/pkg", "k8s.io/apiserver/plugin", "k8s.io/apiextensions-apiserver/pkg", "k8s.io/kube-aggregator/pkg",
		"k8s.io/pod-security-admission", "k8s.io/dynamic-resource-allocation", "k8s.io/component-helpers",
	}
}

// code has the sections about code: functions by their purpose, and the texts of errors.
type code struct{ defaults, validation, functions, messages facts }

func readCode(s *source) (*code, error) {
	c := &code{defaults: facts{}, validation: facts{}, functions: facts{}, messages: facts{}}
	err := s.inspect(codePackages(), func(p *pkg, file *ast.File, n ast.Node) {
		f, ok := n.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			return
		}
		name := path.Base(s.set.Position(file.Pos()).Filename)
		into := c.functions
		switch {
		case strings.HasSuffix(name, "defaults.go"):
			into = c.defaults
		case strings.Contains(p.path, "valid") || strings.Contains(name, "valid") || strings.Contains(name, "strategy"):
			into = c.validation
		}
		into[functionName(p, f)] = fact{parts: strings.Split(p.text(f.Body), "\n"), at: p.at(f.Pos()), code: true}
		if !talks(p.path, name) {
			return
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if text, ok := n.(*ast.BasicLit); ok {
				if value, ok := literal(text); ok && strings.Count(value, " ") > 1 && !strings.Contains(value, "\n") {
					c.messages[value] = fact{at: p.at(text.Pos())}
				}
			}
			return true
		})
	})
	return c, err
}

// talks reports whether the texts of a file reach clients.
func talks(importPath, file string) bool {
	for _, part := range []string{"valid", "registry", "admission", "endpoints", "errors", "printers", "authoriz", "authentic"} {
		if strings.Contains(importPath, part) || strings.Contains(file, part) {
			return true
		}
	}
	return false
}

func functionName(p *pkg, f *ast.FuncDecl) string {
	name := f.Name.Name
	if f.Recv != nil && len(f.Recv.List) == 1 {
		of := f.Recv.List[0].Type
		if index, ok := unstar(of).(*ast.IndexExpr); ok {
			of = index.X
		}
		name = last(of) + "." + name
	}
	return p.path + " " + name
}

func unstar(e ast.Expr) ast.Expr {
	if star, ok := e.(*ast.StarExpr); ok {
		return star.X
	}
	return e
}

// readOverloads returns the overloads of functions in CEL, and the text that declares each.
func readOverloads(s *source) (facts, error) {
	out := facts{}
	err := s.inspect([]string{"k8s.io/apiserver/pkg/cel", "k8s.io/dynamic-resource-allocation/cel"}, func(p *pkg, _ *ast.File, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 || !strings.HasSuffix(last(call.Fun), "Overload") {
			return
		}
		if name, ok := literal(call.Args[0]); ok {
			out[name] = fact{at: p.at(call.Pos())}
		}
	})
	return out, err
}
