package main

import (
	"strings"
	"testing"
)

// crd docs writes a page with an example that is right, whatever else is in the files.
func TestDocs(t *testing.T) {
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"as.example.com"},"spec":{
		"group":"example.com","scope":"Cluster","names":{"plural":"as","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","maximum":3}}}}}}}]}}`
	const rule = `"maximum":3,"x-kubernetes-validations":[{"rule":"self == 3"}]`
	for _, tt := range []invocation{
		{"a definition", definition, []string{"-"}, 0, "  size: 1\n```\n", ""},
		{"an example without what has a rule", strings.Replace(definition, `"maximum":3`, rule, 1), []string{"-"}, 0, "spec: {}\n```\n", ""},
		{"no example", strings.Replace(definition, `{"type":"object","properties":{"size"`, `{"type":"object","x-kubernetes-validations":[{"rule":"false"}],"properties":{"size"`, 1), []string{"-"}, 0, "| `size` | integer |", "example.com/v1 A: no generated example is valid"},
		{"no definition", `{"apiVersion":"v1","kind":"ConfigMap"}`, []string{"-"}, exitUnsure, "", "no CustomResourceDefinitions in"},
		{"no file", "", nil, exitUsage, "", "needs a file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.check(t, nil, "crd", "docs")
		})
	}
}
