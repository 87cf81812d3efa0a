package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// A goCommand runs the go command with the toolchain that a release needs.
type goCommand struct {
	toolchain string // empty for the one at hand
	dir       string
}

func (g goCommand) run(ctx context.Context, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = g.dir
	c.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if g.toolchain != "" {
		c.Env = append(c.Env, "GOTOOLCHAIN="+g.toolchain)
	}
	var out, diagnostics bytes.Buffer
	c.Stdout, c.Stderr = &out, &diagnostics
	err := c.Run()
	if err != nil {
		err = fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, diagnostics.String())
	}
	return out.Bytes(), err
}

// A downloaded module, as go mod download describes it.
type downloaded struct{ Path, Version, Dir, GoMod, Error string }

// download downloads modules, given as path@version. A module without a folder has an error.
func (g goCommand) download(ctx context.Context, modules ...string) ([]downloaded, error) {
	data, err := g.run(ctx, append([]string{"mod", "download", "-json"}, modules...)...)
	var out []downloaded
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var m downloaded
		if end := d.Decode(&m); end == io.EOF {
			break
		} else if end != nil {
			return nil, fmt.Errorf("%w: %w", end, err)
		}
		out = append(out, m)
	}
	if len(out) == 0 {
		return nil, err
	}
	return out, nil // go mod download fails if one of the modules does
}

// goLine returns the version of Go that a release needs.
func (g goCommand) goLine(ctx context.Context, module string) (string, error) {
	found, err := g.download(ctx, module)
	if err != nil {
		return "", err
	}
	if found[0].GoMod == "" {
		return "", fmt.Errorf("%s: %s", module, found[0].Error)
	}
	data, err := os.ReadFile(found[0].GoMod)
	if err != nil {
		return "", err
	}
	mod, err := modfile.ParseLax(found[0].GoMod, data, nil)
	if err != nil || mod.Go == nil {
		return "", err
	}
	return mod.Go.Version, nil
}

// use selects the toolchain for modules with a go line. It returns the version of Go at hand.
func (g *goCommand) use(ctx context.Context, line string) (string, error) {
	at, err := g.run(ctx, "env", "GOVERSION")
	if err != nil {
		return "", err
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(at)), "go")
	if semver.Compare("v"+version, "v"+line) < 0 {
		g.toolchain = "go" + line
	}
	return version, nil
}

// available returns the first of some releases of which the proxy has the module. versions are in order of
// preference.
func (g goCommand) available(ctx context.Context, modules, versions []string) (map[string]string, error) {
	out := map[string]string{}
	for _, version := range versions {
		var ask []string
		for _, m := range modules {
			if out[m] == "" {
				ask = append(ask, m+"@"+versionFor(m, version))
			}
		}
		if len(ask) == 0 {
			break
		}
		data, err := g.run(ctx, append([]string{"list", "-m", "-e", "-f", "{{if not .Error}}{{.Path}}{{end}}"}, ask...)...)
		if err != nil {
			return nil, err
		}
		for name := range strings.FieldsSeq(string(data)) {
			out[name] = version
		}
	}
	return out, nil
}

// sources downloads the modules of a release, and returns their folders.
func (g goCommand) sources(ctx context.Context, versions map[string]string) (map[string]string, error) {
	var ask []string
	for m, v := range versions {
		if slices.Contains(sourceModules(), m) {
			ask = append(ask, m+"@"+versionFor(m, v))
		}
	}
	slices.Sort(ask)
	found, err := g.download(ctx, ask...)
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for _, m := range found {
		if m.Dir == "" {
			return nil, fmt.Errorf("%s %s: %s", m.Path, m.Version, m.Error)
		}
		dirs[m.Path] = filepath.Clean(m.Dir)
	}
	return dirs, nil
}

// sourceModules have the facts of a report.
func sourceModules() []string {
	return []string{
		"k8s.io/api", "k8s.io/apiextensions-apiserver", "k8s.io/apimachinery", "k8s.io/apiserver", "k8s.io/client-go", "k8s.io/component-base",
		"k8s.io/component-helpers", "k8s.io/controller-manager", "k8s.io/dynamic-resource-allocation", "k8s.io/externaljwt", "k8s.io/kms", "k8s.io/kube-aggregator",
		kubernetesModule, "k8s.io/pod-security-admission",
	}
}
