package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	kubernetesModule = "k8s.io/kubernetes"
	ownModule        = "github.com/anykind/anykind"
)

// versionFor returns the version of a module for a release of Kubernetes: v0.37.1 for v1.37.1.
func versionFor(module, release string) string {
	if module == kubernetesModule {
		return release
	}
	return "v0" + strings.TrimPrefix(release, "v1")
}

// checkRelease returns an error for a text that is no release of Kubernetes.
func checkRelease(text string) error {
	if semver.Canonical(text) != text || !strings.HasPrefix(text, "v1.") {
		return fmt.Errorf("%q is no release of Kubernetes: want one such as v1.38.0 or v1.38.0-alpha.2", text)
	}
	return nil
}

// releaseOf returns the release whose modules a go.mod requires.
func releaseOf(mod *modfile.File) string {
	for _, r := range mod.Require {
		if r.Mod.Path == "k8s.io/apimachinery" {
			return "v1" + strings.TrimPrefix(r.Mod.Version, "v0")
		}
	}
	return ""
}

// isOurs reports whether a module has code of this repository. Others build published programs, with the modules that
// these require.
func isOurs(mod *modfile.File) bool {
	if mod.Module.Mod.Path == ownModule {
		return true
	}
	for _, r := range mod.Require {
		if r.Mod.Path == ownModule || strings.HasPrefix(r.Mod.Path, ownModule+"/") {
			return true
		}
	}
	return false
}

// followers adds the modules of a go.mod that have the version of a release.
func followers(into map[string]bool, mod *modfile.File, release string) {
	for _, r := range mod.Require {
		if strings.HasPrefix(r.Mod.Path, "k8s.io/") && r.Mod.Version == versionFor(r.Mod.Path, release) {
			into[r.Mod.Path] = true
		}
	}
	for _, r := range mod.Replace {
		if strings.HasPrefix(r.New.Path, "k8s.io/") && r.New.Version == versionFor(r.New.Path, release) {
			into[r.New.Path] = true
		}
	}
}

// requires reports whether a go.mod of ours requires a module, and does not only replace it.
func requires(mods []goMod, module string) bool {
	return slices.ContainsFunc(mods, func(m goMod) bool {
		return isOurs(m.mod) && slices.ContainsFunc(m.mod.Require, func(r *modfile.Require) bool { return r.Mod.Path == module })
	})
}

// raise sets the versions of modules that follow a release, and the go line. It returns the number of changed
// lines.
func raise(mod *modfile.File, from string, to map[string]string, goLine string) (lines int, err error) {
	for _, r := range mod.Require {
		release, follows := to[r.Mod.Path]
		if !follows || r.Mod.Version != versionFor(r.Mod.Path, from) {
			continue
		}
		if err := mod.AddRequire(r.Mod.Path, versionFor(r.Mod.Path, release)); err != nil {
			return lines, err
		}
		lines++
	}
	for _, r := range mod.Replace {
		release, follows := to[r.New.Path]
		if !follows || r.New.Version != versionFor(r.New.Path, from) {
			continue
		}
		if err := mod.AddReplace(r.Old.Path, r.Old.Version, r.New.Path, versionFor(r.New.Path, release)); err != nil {
			return lines, err
		}
		lines++
	}
	if lines > 0 && goLine != "" && semver.Compare("v"+mod.Go.Version, "v"+goLine) < 0 {
		if err := mod.AddGoStmt(goLine); err != nil {
			return lines, err
		}
		lines++
	}
	return lines, nil
}

// requireOthers sets the versions of other modules, given as path@version, that a go.mod requires.
func requireOthers(mod *modfile.File, with string) error {
	for one := range strings.SplitSeq(with, ",") {
		name, version, _ := strings.Cut(one, "@")
		for _, r := range mod.Require {
			if r.Mod.Path != name {
				continue
			}
			if err := mod.AddRequire(name, version); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// readRequired returns the modules of others that k8s.io/apiserver requires.
func readRequired(s *source) (facts, error) {
	const module = "k8s.io/apiserver"
	if s.dirs[module] == "" {
		return nil, nil
	}
	name := filepath.Join(s.dirs[module], "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	mod, err := modfile.ParseLax(name, data, nil)
	if err != nil {
		return nil, err
	}
	out := facts{}
	for _, r := range mod.Require {
		if !strings.HasPrefix(r.Mod.Path, "k8s.io/") {
			out[r.Mod.Path] = fact{parts: []string{r.Mod.Version}, at: module + "/go.mod"}
		}
	}
	return out, nil
}
