package main

import (
	"strings"
	"testing"
)

// The exit code of crd diff says whether something breaks.
func TestDiff(t *testing.T) {
	const definition = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"},"spec":{
		"group":"example.com","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object","properties":{"n":{"type":"integer"}}}}}]}}`
	tighter := strings.Replace(definition, `"integer"`, `"integer","maximum":3`, 1)
	for _, tt := range []struct {
		now string
		invocation
	}{
		{definition, invocation{"the same", definition, nil, 0, "1 definition: 0 breaking, 0 caution", ""}},
		{tighter, invocation{"tighter", definition, nil, exitFailed, "breaking  v1 n: maximum changes from none to 3", ""}},
		{definition, invocation{"wider", tighter, []string{"--all", "-o", "json"}, 0, `"change": "maximum-relaxed"`, ""}},
		{definition, invocation{"nothing", `{"apiVersion":"v1","kind":"ConfigMap"}`, nil, exitUnsure, "", "no CustomResourceDefinitions in"}},
		{definition, invocation{"in no form", definition, []string{"-o", "xml"}, exitUsage, "", "want one of text, json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.check(t, map[string]string{"new.json": tt.now}, "crd", "diff", "-", "new.json")
		})
	}
}

// crd try reads objects from one place, and says if it cannot.
func TestTry(t *testing.T) {
	const object = `{"apiVersion":"v1","kind":"ConfigMap"}`
	files := map[string]string{"new.yaml": `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.example.com"},"spec":{
		"group":"example.com","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,
		"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`}
	for _, tt := range []invocation{
		{"two places", object, []string{"--data-dir", "a", "--etcd-snapshot", "b", "-"}, exitUsage, "", "are mutually exclusive"},
		{"keys for a server", object, []string{"--encryption-provider-config", "a", "-"}, exitUsage, "", "--encryption-provider-config needs --data-dir or --etcd-snapshot"},
		{"no keys", object, []string{"--data-dir", "b", "--encryption-provider-config", "a", "new.yaml"}, exitUnsure, "", `error reading encryption provider configuration file "a"`},
		{"no file", object, nil, exitUsage, "", "needs one file"},
		{"no definition", object, []string{"--etcd-snapshot", "b", "-"}, exitUnsure, "", "no CustomResourceDefinitions in"},
		{"no snapshot", object, []string{"--etcd-snapshot", "b", "new.yaml"}, exitUnsure, "", "no such file"},
		{"no data directory", object, []string{"--data-dir", "b", "new.yaml"}, exitUnsure, "", "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) { tt.check(t, files, "crd", "try") })
	}
}
