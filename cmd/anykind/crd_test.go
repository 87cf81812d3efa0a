package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The exit code of crd lint is for CI.
func TestLint(t *testing.T) {
	const accepted, refused = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"},"spec":{
		"group":"example.com","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"n":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 0"}]}}}}}]}}`, `"self"`
	for _, tt := range []invocation{
		{"accepted", accepted, []string{"-"}, 0, "stdin:1: CustomResourceDefinition a.example.com: accepted", ""},
		{"refused", strings.ReplaceAll(accepted, `"self > 0"`, refused), []string{"-"}, exitFailed, "cel expression must evaluate to a bool", "refused objects: 1"},
		{"as JSON", accepted, []string{"-o", "json", "-"}, 0, `"problems": 0`, ""},
		{"no definition", `{"apiVersion":"v1","kind":"ConfigMap"}`, []string{"-"}, exitFailed, "", "no CustomResourceDefinitions in"},
		{"no such file", "", []string{filepath.Join(t.TempDir(), "x.yaml")}, exitUnsure, "", "no such file"},
		{"no file", "", nil, exitUsage, "", "needs a file"},
		{"no such output", "", []string{"-o", "xml", "-"}, exitUsage, "", "want one of text, json"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.check(t, nil, "crd", "lint")
		})
	}
}

// The exit code of check says whether something is wrong, or could not be looked at.
func TestCheck(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"a":"b"}}`
	for _, tt := range []invocation{
		{"accepted", object, []string{"-"}, 0, "1 object in 1 file: 1 accepted, 0 refused", ""},
		{"refused", strings.Replace(object, `"b"`, `1`, 1), []string{"-"}, exitFailed, "stdin:1:63: error: ConfigMap default/a: ", "refused objects: 1"},
		{"of an unknown kind", strings.Replace(object, "ConfigMap", "Widget", 1), []string{"-"}, exitUnsure, "no matches for kind", "objects that could not be checked: 1"},
		{"passed over", strings.Replace(object, "ConfigMap", "Widget", 1), []string{"--pass-unknown-kinds", "-"}, 0, "0 refused", ""},
		{"what would be stored", object, []string{"-o", "yaml", "-n", "prod", "-"}, 0, "namespace: prod", "1 accepted"},
		{"what is changed", object, []string{"--diff", "-"}, 0, "+  namespace: default", "1 accepted"},
		{"for GitHub", strings.Replace(object, `"a":"b"`, `"a b":"b"`, 1), []string{"-o", "github", "-"}, exitFailed, "::error file=stdin,line=1,col=71,title=ConfigMap default/a::data[a b]: ", "refused"},
		{"what to do with unknown fields", object, []string{"--validate=perhaps", "-"}, exitUsage, "", "want strict, warn or ignore"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.check(t, nil, "check")
		})
	}
}
