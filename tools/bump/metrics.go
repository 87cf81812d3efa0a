package main

import (
	"go/ast"
	"strings"
)

// metricPackages have the metrics of kube-apiserver.
func metricPackages() []string {
	return []string{
		"k8s.io/apiserver/pkg", "k8s.io/component-base", "k8s.io/kube-aggregator/pkg", "k8s.io/apiextensions-apiserver/pkg",
		"k8s.io/kubernetes/pkg/controlplane", "k8s.io/kubernetes/pkg/kubeapiserver", "k8s.io/kubernetes/pkg/registry",
		"k8s.io/kubernetes/pkg/serviceaccount", "k8s.io/kubernetes/plugin", "k8s.io/pod-security-admission", "k8s.io/kubernetes/pkg/kubelet/client",
	}
}

// readMetrics returns the metrics with type, stability, labels of constants, and the version that deprecates them.
func readMetrics(s *source) (facts, error) {
	out, constants := facts{}, map[*pkg]map[string]string{}
	err := s.inspect(metricPackages(), func(p *pkg, _ *ast.File, n ast.Node) {
		options, ok := n.(*ast.CompositeLit)
		if !ok || !strings.HasSuffix(last(options.Type), "Opts") {
			return
		}
		if constants[p] == nil {
			constants[p] = p.constants()
		}
		text := func(e ast.Expr) string {
			if value, ok := literal(e); ok {
				return value
			}
			if value, ok := constants[p][last(e)]; ok {
				return value
			}
			return last(e)
		}
		f, names := fact{at: p.at(options.Pos()), parts: []string{strings.TrimSuffix(last(options.Type), "Opts")}}, map[string]string{}
		for _, e := range options.Elts {
			e, ok := e.(*ast.KeyValueExpr)
			if !ok {
				continue
			}
			switch key := last(e.Key); key {
			case "Namespace", "Subsystem", "Name":
				names[key] = text(e.Value)
			case "StabilityLevel", "DeprecatedVersion":
				f.parts = append(f.parts, text(e.Value))
			}
		}
		if names["Name"] == "" {
			return
		}
		var name []string
		for _, key := range []string{"Namespace", "Subsystem", "Name"} {
			if names[key] != "" {
				name = append(name, names[key])
			}
		}
		out[strings.Join(name, "_")] = f
	})
	return out, err
}
