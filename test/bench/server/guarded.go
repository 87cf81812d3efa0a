package server

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/anykind/anykind/internal/store/encrypt/kms/kmstest"
	"github.com/anykind/anykind/test/bench/payload"
)

// Policies is the number of admission policies of Guarded.
const Policies = 10

// Guarded compares anykind with everything that protects a server with anykind without any of it.
func (p Programs) Guarded() Sides {
	return Sides{
		Anykind:   Kind{Name: "anykind, guarded", serve: p.guarded, beside: guard},
		Reference: Kind{Name: "anykind, open", serve: p.open},
	}
}

func (p Programs) open(at place) command {
	c := p.anykind(at)
	c.args = append(c.args, "--authorization-mode", "AlwaysAllow", "--enable-priority-and-fairness=false")
	return c
}

func (p Programs) guarded(at place) command {
	c := p.anykind(at)
	file := func(name string) string { return filepath.Join(filepath.Dir(at.dir), name) }
	c.args = append(c.args,
		"--audit-policy-file", file("audit.yaml"), "--audit-log-path", file("audit.log"),
		"--encryption-provider-config", file("encryption.yaml"), "--admission-control-config-file", file("admission.yaml"),
	)
	return c
}

// guard writes the files of a guarded server, and starts a KMS plugin.
func guard(dir string) (end func() error, err error) {
	manifests := filepath.Join(dir, "policies")
	if err := os.MkdirAll(manifests, 0o700); err != nil {
		return nil, err
	}
	plugin, err := kmstest.Start(filepath.Join(dir, "kms.sock"))
	if err != nil {
		return nil, err
	}
	write := func(name, text string) {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("audit.yaml", `apiVersion: audit.k8s.io/v1
kind: Policy
rules: [{level: Metadata}]
`)
	write("encryption.yaml", `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources: [{resources: ["*.*"], providers: [{kms: {apiVersion: v2, name: bench, endpoint: "`+plugin.Endpoint()+`"}}, {identity: {}}]}]
`)
	write("admission.yaml", `apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: ValidatingAdmissionPolicy
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: ValidatingAdmissionPolicyConfiguration, staticManifestsDir: "`+manifests+`"}
`)
	write("policies/all.yaml", string(payload.StaticPolicies(Policies, payload.Group)))
	if err != nil {
		return nil, errors.Join(err, plugin.Stop())
	}
	return plugin.Stop, nil
}
