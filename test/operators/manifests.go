package operators

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/internal/object/kubernetes"
	"github.com/anykind/anykind/test/program"
)

// A Project is the manifests in a published module.
type Project struct {
	Name   string
	Module string
	// Namespace is created first, unless the manifests do it.
	Namespace string
	// Needs are projects with definitions for its objects.
	Needs []string
	// Without are versions of kinds whose definitions no module publishes. Their objects are omitted.
	Without []string
	Parts   []Part
}

// A Part makes YAML documents from a file or a folder of a module.
type Part struct {
	Path   string
	Of     string // another module than the project's
	Render func(p *Project, kubectl, path string) ([]byte, error)
}

// A Document is one published object.
type Document struct {
	YAML       []byte
	APIVersion string
	Kind       string
}

// Definition reports whether it is a CustomResourceDefinition, which has to be applied first.
func (d *Document) Definition() bool { return d.Kind == "CustomResourceDefinition" }

// Documents returns the objects of a project.
func (p *Project) Documents(modules map[string]program.Module, kubectl string) (all []*Document, err error) {
	for _, part := range p.Parts {
		of := p.Module
		if part.Of != "" {
			of = part.Of
		}
		module, found := modules[of]
		if !found {
			return nil, fmt.Errorf("%s is not required", of)
		}
		data, err := part.Render(p, kubectl, filepath.Join(module.Dir, filepath.FromSlash(part.Path)))
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", part.Path, of, err)
		}
		documents, err := split(data)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", part.Path, of, err)
		}
		all = append(all, documents...)
	}
	return slices.DeleteFunc(all, func(d *Document) bool { return slices.Contains(p.Without, d.APIVersion) }), nil
}

// split splits documents, and omits empty ones.
func split(data []byte) (all []*Document, err error) {
	for r := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := r.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		var head struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal(document, &head); err != nil {
			return nil, err
		}
		if head.Kind != "" {
			all = append(all, &Document{YAML: document, APIVersion: head.APIVersion, Kind: head.Kind})
		}
	}
}

// join returns the documents as one file.
func join(all []*Document) []byte {
	var parts [][]byte
	for _, d := range all {
		parts = append(parts, bytes.TrimSpace(d.YAML))
	}
	return append(bytes.Join(parts, []byte("\n---\n")), '\n')
}

// files returns the YAML files at a path and below.
func files(_ *Project, _, path string) ([]byte, error) {
	var out bytes.Buffer
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".yaml" || d.Name() == "kustomization.yaml" {
			return err
		}
		data, err := os.ReadFile(file)
		out.WriteString("\n---\n")
		out.Write(data)
		return err
	})
	return out.Bytes(), err
}

// kustomized returns the output of kubectl kustomize for a folder. There is no git on its PATH, so
// nothing is fetched.
func kustomized(_ *Project, kubectl, path string) ([]byte, error) {
	c := exec.Command(kubectl, "kustomize", path)
	c.Env = []string{"PATH="}
	out, err := c.Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return nil, fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	return out, err
}

// chart renders a Helm chart with values, together with the definitions beside the templates.
func chart(values map[string]any) func(*Project, string, string) ([]byte, error) {
	return func(p *Project, _, path string) ([]byte, error) {
		c, err := loader.Load(path)
		if err != nil {
			return nil, err
		}
		// Charts that are not part of the module are disabled.
		if err := chartutil.ProcessDependenciesWithMerge(c, values); err != nil {
			return nil, err
		}
		capabilities := chartutil.DefaultCapabilities.Copy()
		capabilities.KubeVersion = chartutil.KubeVersion{Version: kubernetes.Version, Major: kubernetes.Major, Minor: kubernetes.Minor}
		options := chartutil.ReleaseOptions{Name: p.Name, Namespace: p.Namespace, IsInstall: true, Revision: 1}
		all, err := chartutil.ToRenderValues(c, values, options, capabilities)
		if err != nil {
			return nil, err
		}
		rendered, err := engine.Engine{}.Render(c, all)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		for _, definition := range c.CRDObjects() {
			fmt.Fprintf(&out, "\n---\n%s", definition.File.Data)
		}
		var names []string
		for name := range rendered {
			if strings.HasSuffix(name, ".yaml") {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(&out, "\n---\n%s", rendered[name])
		}
		return out.Bytes(), nil
	}
}
