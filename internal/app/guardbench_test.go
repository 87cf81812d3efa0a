//go:build !race

package app

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/access/audit"
)

// policyOf is a ValidatingAdmissionPolicy with its binding.
const policyOf = `
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: p%[1]d.static.k8s.io}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: ["*"], operations: [CREATE, UPDATE], resources: [widgets]}]}
  variables: [{name: name, expression: object.metadata.name}]
  validations:
  - expression: "variables.name != 'never'"
  - expression: "object.spec.all(field, field != 'none')"
  - expression: "request.operation != 'DELETE'"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p%[1]d.static.k8s.io}
spec: {policyName: p%[1]d.static.k8s.io, validationActions: [Deny]}
`

// BenchmarkGuards measures the cost of each protection of a request.
func BenchmarkGuards(b *testing.B) {
	dir := b.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		write(b, path, []byte(text))
		return path
	}
	audited := func(o *Options) {
		o.Audit = audit.Options{PolicyFile: file("audit.yaml", "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"), File: audit.FileOptions{
			Path: filepath.Join(dir, "audit.log"), Format: audit.JSON, Version: audit.Version, Delivery: audit.Delivery{Mode: audit.Blocking, MaxEventSize: 1 << 20, MaxBatchSum: 1 << 20},
		}}
	}
	encrypted := func(o *Options) {
		o.Encryption.ConfigFile = file("encryption.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: ['*.*'], providers: [{aesgcm: {keys: [{name: a, secret: MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=}]}}, {identity: {}}]}]\n")
	}
	ruled := func(o *Options) {
		var all strings.Builder
		for n := range 10 {
			fmt.Fprintf(&all, policyOf, n)
		}
		file("policies/all.yaml", all.String())
		o.Admission.ConfigFile = file("admission.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins: [{name: ValidatingAdmissionPolicy, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: "+filepath.Join(dir, "policies")+"}}]\n")
	}
	for _, guard := range []struct {
		name  string
		apply []func(*Options)
	}{
		{"open", []func(*Options){func(o *Options) { o.Unclassified = true }}}, {"fairness", nil}, {"audit", []func(*Options){audited}},
		{"encryption", []func(*Options){encrypted}}, {"policies", []func(*Options){ruled}}, {"all", []func(*Options){audited, encrypted, ruled}},
	} {
		var o Options
		for _, apply := range guard.apply {
			apply(&o)
		}
		h, n := handleWith(b, o), 0
		for _, k := range h.requests()[:4] {
			b.Run(k.name+"/"+guard.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					k.do(n)
					n++
				}
			})
		}
	}
}
