package main

import (
	"strings"
	"testing"
)

// TestInfer covers arguments, output and exit code of crd infer.
func TestInfer(t *testing.T) {
	const sample = `{"apiVersion":"example.com/v1","kind":"CronTab","metadata":{"name":"a","namespace":"b","resourceVersion":"7"},"spec":{"n":1},"status":{"phase":"Up"}}`
	const schema = `{"$ref":"#/$defs/CronTab","$defs":{"CronTab":{"type":"object","properties":{"n":{"type":"integer","maximum":3}},"not":{}},"Other":{"type":"object"}}}`
	files := map[string]string{"sample.json": `{ "n": 5 }`, "pod.yaml": "apiVersion: v1\nkind: Pod\n", "broken.yaml": "a: [\n"}
	for _, tt := range []invocation{
		{"a sample", sample, []string{"-"}, 0, "  name: crontabs.example.com\n", "with fewer than 3 samples"},
		{"with its status", sample, []string{"-"}, 0, "    subresources:\n      status: {}\n", ""},
		{"a list and another kind", `{"apiVersion":"v1","kind":"List","items":[` + sample + `,{"apiVersion":"v1","kind":"Pod"}]}`, []string{"--min-samples", "1", "-"}, 0, "required: [spec]", "skipped objects of other kinds: 1"},
		{"as JSON", sample, []string{"-o", "json", "-"}, 0, `"plural": "crontabs"`, ""},
		{"names and scope", sample, []string{"--plural", "cron", "--short-names", "ct,cr", "--scope", "Cluster", "-"}, 0, "shortNames: [ct, cr]", ""},
		{"plain JSON", `{"a": 1} {"a": 2}`, []string{"--group", "example.com", "--kind", "Thing", "-"}, 0, "# Inferred from 2 samples.", "the scope defaults to Namespaced"},
		{"plain YAML in a version", "a: 1\n---\na: 2\n", []string{"--group", "example.com", "--kind", "Thing", "--version", "v2", "-"}, 0, "  - name: v2\n", ""},
		{"a schema", schema, []string{"--json-schema", "-", "--group", "example.com"}, 0, "maximum: 3", "v1alpha1 spec: not is not checked"},
		{"another type of it", schema, []string{"--json-schema", "-", "--group", "example.com", "--type", "Other"}, 0, "name: others.example.com", ""},
		{"no such type", schema, []string{"--json-schema", "-", "--group", "example.com", "--type", "None"}, exitUnsure, "", "no type None; the schema has CronTab, Other"},
		{"a schema that samples do not pass", `{"type":"object","properties":{"n":{"type":"integer","maximum":3}}}`, []string{"--json-schema", "-", "--group", "example.com", "--kind", "CronTab", "sample.json"}, exitFailed, "", "sample.json:1:3: error: CronTab default/sample: spec.n: Invalid value: 5"},
		{"a schema that no sample is about", schema, []string{"--json-schema", "-", "--group", "example.com", "--version", "v1", "pod.yaml"}, exitUnsure, "", "no sample has the kind CronTab of the group example.com"},
		{"a schema and what is no sample", schema, []string{"--json-schema", "-", "--group", "example.com", "broken.yaml"}, exitUnsure, "", "objects that could not be checked: 1"},
		{"a schema and samples at once", "", []string{"--json-schema", "-", "--group", "example.com", "-"}, exitUsage, "", "cannot both be standard input"},
		{"what is no sample", "", []string{"broken.yaml"}, exitUnsure, "", "broken.yaml:1: "},
		{"a name that no object can have", strings.Replace(sample, `"a"`, `"A B"`, 1), []string{"-"}, exitFailed, "", "stdin:1:61: error: CronTab b/A B: metadata.name: Invalid value"},
		{"how many are refused", strings.Replace(sample, `"a"`, `"A B"`, 1) + sample, []string{"-"}, exitFailed, "", "2 objects in 1 file: 1 accepted, 1 refused"},
		{"a kind that is no name", strings.Replace(sample, "CronTab", "Cron-Tab!", 1), []string{"-"}, exitFailed, "", "spec.names.kind: Invalid value"},
		{"only built-in kinds", `{"apiVersion":"apps/v1","kind":"Deployment"}`, []string{"-"}, exitUnsure, "", "no samples: 1 objects are of built-in kinds"},
		{"plain JSON without a kind", `{"a": 1}`, []string{"-"}, exitUnsure, "", "apiVersion or kind is missing"},
		{"several kinds and a name", sample + strings.Replace(sample, "CronTab", "Other", 1), []string{"--plural", "x", "-"}, exitUnsure, "", "the samples have 2 kinds: choose one with --kind"},
		{"one of several kinds", sample + strings.Replace(sample, "CronTab", "Other", 1), []string{"--plural", "x", "--kind", "Other", "-"}, 0, "name: x.example.com", "skipped objects of other kinds: 1"},
		{"no such file", "", []string{"none.json"}, exitUnsure, "", "no such file"},
		{"no file", "", nil, exitUsage, "", "needs a file with samples"},
		{"no such scope", "", []string{"--scope", "World", "-"}, exitUsage, "", "want Namespaced or Cluster"},
		{"no such output", "", []string{"-o", "xml", "-"}, exitUsage, "", "want yaml or json"},
		{"a group without a kind", "", []string{"--group", "example.com", "-"}, exitUsage, "", "--group needs --kind"},
		{"a schema without a group", "", []string{"--json-schema", "-"}, exitUsage, "", "--json-schema needs --group"},
		{"a type without a schema", "", []string{"--type", "A", "-"}, exitUsage, "", "--type needs --json-schema"},
		{"no samples are enough", "", []string{"--min-samples", "0", "-"}, exitUsage, "", "must be 1 or more"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stdout := tt.check(t, files, "crd", "infer")
			if tt.code != 0 && stdout != "" {
				t.Errorf("something is written that is wrong:\n%s", stdout)
			}
		})
	}
}
