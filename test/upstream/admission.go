package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// admissionFolder is the folder of the admission tests, with its path.
const (
	admissionFolder = "admission"
	admissionPath   = "github.com/anykind/anykind/test/upstream/admission"
)

// admissionSources are the folders of k8s.io/kubernetes to copy, by the name of the copy. Our files
// are added to them.
var admissionSources = []source{
	{to: "etcd", from: "test/integration/etcd", files: "data.go", ours: "crds/crds.go"},
	{to: "framework", from: "test/integration/framework", files: "cbor.go", ours: "framework/framework.go"},
	{to: "admissionwebhook", from: "test/integration/apiserver/admissionwebhook", files: "*.go"},
}

// A source is a part of a folder to copy.
type source struct{ to, from, files, ours string }

// leftOut are files whose tests need a server in their own process: they change variables of it, such
// as the resolver of Services.
var leftOut = map[string]bool{"ip_reuse_test.go": true, "load_balance_test.go": true}

// imports replaces imports of Kubernetes by ours.
var imports = strings.NewReplacer(
	`"k8s.io/kubernetes/cmd/kube-apiserver/app/testing"`, `"`+admissionPath+`/starter"`,
	`"k8s.io/kubernetes/test/integration/framework"`, `"`+admissionPath+`/.run/framework"`,
	`"k8s.io/kubernetes/test/integration/etcd"`, `"`+admissionPath+`/.run/etcd"`,
)

// runAdmission runs Kubernetes' tests of admission against the program.
func runAdmission(o options) error {
	known, err := readKnown(filepath.Join(admissionFolder, "known.txt"))
	if err != nil {
		return err
	}
	dir := filepath.Join(admissionFolder, ".run")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	from, err := kubernetes()
	if err != nil {
		return err
	}
	for _, s := range admissionSources {
		if err := s.copy(filepath.Join(dir, s.to), from); err != nil {
			return err
		}
	}
	program, err := filepath.Abs(filepath.Join(dir, "anykind"))
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-o", program, "./cmd/anykind")
	build.Dir = filepath.Join("..", "..")
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building anykind: %w\n%s", err, said)
	}
	etcd, err := startEtcd(filepath.Join(dir, "data"))
	if err != nil {
		return fmt.Errorf("starting etcd: %w", err)
	}
	defer etcd.Close()
	if err := os.Setenv("ANYKIND_PROGRAM", program); err != nil {
		return err
	}
	r, err := runTests(o, command{dir: admissionFolder, args: []string{"test"}, packages: []string{"./.run/admissionwebhook"}}, known, filepath.Join(dir, "failed"))
	if err != nil {
		return err
	}
	r.print(os.Stdout, known)
	return r.verdict(known, o.run != "")
}

// kubernetes returns the folder of the published source of Kubernetes.
func kubernetes() (string, error) {
	out, err := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes").Output()
	var m struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(out, &m); jsonErr != nil {
		return "", fmt.Errorf("downloading k8s.io/kubernetes: %w", err)
	}
	if m.Error != "" {
		return "", fmt.Errorf("downloading k8s.io/kubernetes: %s", m.Error)
	}
	return m.Dir, nil
}

// copy copies the files of a source, with replaced imports.
func (s source) copy(to, from string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(from, filepath.FromSlash(s.from), s.files))
	if err != nil {
		return err
	}
	if s.ours != "" {
		files = append(files, filepath.Join(admissionFolder, filepath.FromSlash(s.ours)))
	}
	for _, file := range files {
		if leftOut[filepath.Base(file)] {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if _, err := imports.WriteString(&out, string(data)); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), out.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
