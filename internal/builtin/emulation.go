package builtin

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// apply sets the served versions of a kind, its storage version, and whether it has generations.
func (s selection) apply(d *resource.Definition) error {
	older, olderAsked := false, false // whether an older version is served, or selected; alpha versions do not count
	for _, v := range slices.Backward(d.Versions) {
		asked := s.gated(d.Gate) && (s.serves(d, v.Name) || olderAsked && s.gates.ServesNewer() && !s.names(d, v.Name))
		on, err := s.inRelease(d, v, older)
		if err != nil && asked {
			return err
		}
		if gv := d.GroupResource().WithVersion(v.Name).GroupVersion(); asked {
			s.newer[gv] = s.newer[gv] || gate.Release(v.Introduced) > s.gates.Emulated()
			s.inUse[gv] = s.inUse[gv] || on
		}
		if on = on && asked; v.Served != on { // shared Definitions are in use, and have it already
			v.Served = on
		}
		if !alpha(v.Name) {
			older, olderAsked = older || on, olderAsked || asked
		}
	}
	s.store(d)
	if d.HasGeneration && !s.gated(d.GenerationGate) {
		d.HasGeneration = false
	}
	return nil
}

// gated reports whether a gate is on, or there is none.
func (s selection) gated(n gate.Name) bool { return n == "" || s.gates.On(n) }

func alpha(version string) bool { return strings.Contains(version, "alpha") }

// names reports whether the configuration has a key for a version of a kind, or for the version.
func (s selection) names(d *resource.Definition, version string) bool {
	gv := schema.GroupVersion{Group: d.Group, Version: version}
	_, whole := s.versions[gv]
	_, one := s.resources[gv.WithResource(d.Plural)]
	return whole || one
}

// inRelease reports whether the emulated release has a version of a kind. older is whether it serves an older one.
func (s selection) inRelease(d *resource.Definition, v *resource.Version, older bool) (bool, error) {
	release := s.gates.Emulated()
	switch gvr := d.GroupResource().WithVersion(v.Name); {
	case v.Removed > 0 && gate.Release(v.Removed) <= release:
		return false, nil
	case gate.Release(v.Introduced) <= release, s.gates.ServesNewer() && older:
		return true, nil
	case s.gates.ServesNamed() && (s.resources[gvr] || s.versions[gvr.GroupVersion()]):
		return true, nil
	case s.resources[gvr]:
		return false, fmt.Errorf("cannot enable resource %s in runtime-config because it is introduced at %s after the current version %s. "+
			"Consider setting --runtime-config-emulation-forward-compatible=true", gvr, gate.Release(v.Introduced), release)
	}
	return false, nil
}

// checkNewer rejects a configuration that enables a version whose kinds are all newer than the release.
func (s selection) checkNewer() error {
	for gv, on := range s.versions {
		if on && s.newer[gv] && !s.inUse[gv] {
			return fmt.Errorf("cannot enable version %s in runtime-config because all the resources have been introduced after the current version %s. "+
				"Consider setting --runtime-config-emulation-forward-compatible=true", gv, s.gates.Emulated())
		}
	}
	return nil
}

// store sets the storage version: the preferred one that all compatible servers know. Alpha versions are not
// compatible. If there is none, it is the preferred version of the emulated release.
func (s selection) store(d *resource.Definition) {
	if slices.ContainsFunc(d.Versions, func(v *resource.Version) bool { return v.Pinned }) {
		return
	}
	known := func(release gate.Release, alphas bool) int {
		return slices.IndexFunc(d.Versions, func(v *resource.Version) bool {
			return gate.Release(v.Introduced) <= release && (alphas || !alpha(v.Name))
		})
	}
	at := known(s.gates.Compatible(), false)
	if at < 0 {
		at = max(0, known(s.gates.Emulated(), true))
	}
	for i, v := range d.Versions {
		if v.Storage != (i == at) {
			v.Storage = i == at
		}
	}
}
