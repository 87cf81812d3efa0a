package main

import (
	"fmt"
	"go/ast"
	"maps"
	"slices"
	"strings"
)

// gatePackages have the gates of kube-apiserver. A later one replaces the gates of earlier ones.
func gatePackages() []string {
	return []string{
		"k8s.io/client-go/features", "k8s.io/component-base/logs/api/v1", "k8s.io/component-base/metrics/features", "k8s.io/component-base/zpages/features",
		"k8s.io/apiextensions-apiserver/pkg/features", "k8s.io/apiserver/pkg/features", "k8s.io/kubernetes/pkg/features",
	}
}

// readGates returns the gates with their stages, from the tables in the source.
func readGates(s *source) (facts, error) {
	var packages []*pkg
	names := map[string]string{} // of gates by constant
	for _, root := range gatePackages() {
		more, err := s.below(root)
		if err != nil {
			return nil, err
		}
		for _, p := range more {
			packages = append(packages, p)
			maps.Copy(names, p.constants())
		}
	}
	// kube-apiserver has the gates of controller managers, too, some of them in its own table.
	managers, err := s.pkg("k8s.io/controller-manager/pkg/features")
	if err != nil {
		return nil, err
	}
	if managers != nil {
		maps.Copy(names, managers.constants())
		packages = append([]*pkg{managers}, packages...)
	}
	out, needs := facts{}, map[string][]string{}
	for _, p := range packages {
		for _, file := range p.files {
			ast.Inspect(file, func(n ast.Node) bool {
				table, ok := n.(*ast.CompositeLit)
				if !ok {
					return true
				}
				of, ok := table.Type.(*ast.MapType)
				if !ok || last(of.Key) != "Feature" {
					return true
				}
				for _, e := range table.Elts {
					p.readGate(out, needs, names, of, e.(*ast.KeyValueExpr))
				}
				return true
			})
		}
	}
	for name, list := range needs {
		if f, ok := out[name]; ok && len(list) > 0 {
			f.parts = append(f.parts, "needs "+strings.Join(list, " "))
			out[name] = f
		}
	}
	return out, nil
}

// readGate adds an entry of a table: the specifications of a gate, or the gates that it needs.
func (p *pkg) readGate(out facts, needs map[string][]string, names map[string]string, of *ast.MapType, e *ast.KeyValueExpr) {
	name := names[last(e.Key)]
	value, ok := e.Value.(*ast.CompositeLit)
	if !ok || name == "" {
		return
	}
	list, isList := of.Value.(*ast.ArrayType)
	switch {
	case isList && last(list.Elt) == "Feature":
		for _, need := range value.Elts {
			if call, ok := need.(*ast.CallExpr); ok && len(call.Args) == 1 {
				need = call.Args[0] // of a Feature of another package
			}
			needs[name] = append(needs[name], names[last(need)])
		}
		slices.Sort(needs[name])
	case last(of.Value) == "VersionedSpecs":
		f := fact{at: p.at(e.Pos())}
		for _, spec := range value.Elts {
			if spec, ok := spec.(*ast.CompositeLit); ok {
				f.parts = append(f.parts, specOf(spec))
			}
		}
		out[name] = f
	}
}

// specOf returns a specification as gates.txt has it.
func specOf(spec *ast.CompositeLit) string {
	version, stage, state, locked, compatible := "", "stable", "off", "", ""
	for _, e := range spec.Elts {
		e, ok := e.(*ast.KeyValueExpr)
		if !ok {
			continue
		}
		switch key, value := last(e.Key), last(e.Value); key {
		case "Version", "MinCompatibilityVersion":
			if call, ok := e.Value.(*ast.CallExpr); ok && len(call.Args) == 1 {
				value, _ = literal(call.Args[0])
			}
			if key == "Version" {
				version = value
			} else {
				compatible = " compatible=" + value
			}
		case "Default":
			if value == "true" {
				state = "on"
			}
		case "LockToDefault":
			if value == "true" {
				locked = " locked"
			}
		case "PreRelease":
			stage = map[string]string{"GA": "stable"}[value]
			if stage == "" {
				stage = strings.ToLower(value)
			}
		}
	}
	return version + " " + stage + " " + state + locked + compatible
}

// gatesText returns the gates as gates.txt has them.
func gatesText(gates facts) string {
	var out strings.Builder
	for _, name := range gates.names() {
		specs := slices.Clone(gates[name].parts)
		needs := ""
		if n := len(specs); strings.HasPrefix(specs[n-1], "needs ") {
			specs, needs = specs[:n-1], " "+specs[n-1]
		}
		fmt.Fprintf(&out, "%s %s%s\n", name, strings.Join(specs, ", "), needs)
	}
	return out.String()
}
