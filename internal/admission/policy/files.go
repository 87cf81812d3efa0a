package policy

import (
	"context"
	"fmt"
	"strings"

	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
)

// load reads the policies and bindings in files, if StaticManifestsDir is set.
func (p *plugin[C]) load(of kinds, c *Config) error {
	if c.StaticManifestsDir == "" {
		return nil
	}
	f := files{policy: p.parts.Core.Lookup(group, of.policies), binding: p.parts.Core.Lookup(group, of.bindings)}
	p.folder = &manifest.Folder{
		Path: c.StaticManifestsDir, Plugin: of.plugin, Kinds: []*resource.Definition{f.policy, f.binding},
		Check: f.check, CheckAll: f.checkAll, Replace: p.replaceFiles, Metrics: p.parts.Manifests, Log: p.parts.Log,
	}
	if err := p.folder.Load(); err != nil {
		return fmt.Errorf("failed to load static policy manifests from %q: %w", c.StaticManifestsDir, err)
	}
	return nil
}

// Follow reloads the policies in files when they change, until ctx ends.
func (p *plugin[C]) Follow(ctx context.Context) { p.folder.Follow(ctx) }

// replaceFiles replaces the policies and bindings from files.
func (p *plugin[C]) replaceFiles(objects []object.Tree) error {
	policies, bindings := map[string]*policy[C]{}, map[string]*binding{}
	for _, t := range objects {
		name, data := object.Name(t), object.AppendJSON(nil, t)
		if object.Kind(t) == p.folder.Kinds[0].Kind {
			r, err := parse[policySpec](data)
			if err != nil {
				return err
			}
			policies[name] = p.newPolicy(name, r)
			continue
		}
		r, err := parse[binding](data)
		if err != nil {
			return err
		}
		r.Spec.name = name
		bindings[name] = &r.Spec
	}
	p.files.replace(policies, bindings)
	return nil
}

// files are the kinds of objects in files.
type files struct{ policy, binding *resource.Definition }

// check rejects policies and bindings in files that refer to objects of the API.
func (f files) check(t object.Tree, _ string) error {
	name := object.Name(t)
	spec, _ := t["spec"].(map[string]any)
	if object.Kind(t) == f.policy.Kind {
		if spec["paramKind"] != nil {
			return fmt.Errorf("%s %q: spec.paramKind is not supported for static manifests", f.policy.Kind, name)
		}
		return nil
	}
	switch of := policyOf(t); {
	case of == "":
		return fmt.Errorf("binding %q must reference a policy (spec.policyName)", name)
	case !strings.HasSuffix(of, manifest.Suffix):
		return fmt.Errorf("binding %q: spec.policyName %q must end with %q", name, of, manifest.Suffix)
	case spec["paramRef"] != nil:
		return fmt.Errorf("binding %q: spec.paramRef is not supported for static manifests", name)
	}
	return nil
}

// checkAll checks that the policies of bindings are in files, too.
func (f files) checkAll(objects []object.Tree) error {
	known := map[string]bool{}
	for _, t := range objects {
		if object.Kind(t) == f.policy.Kind {
			known[object.Name(t)] = true
		}
	}
	for _, t := range objects {
		if of := policyOf(t); object.Kind(t) == f.binding.Kind && !known[of] {
			return fmt.Errorf("binding %q references policy %q which does not exist in the manifest directory", object.Name(t), of)
		}
	}
	return nil
}

// policyOf returns the policy name of a binding.
func policyOf(binding object.Tree) string {
	spec, _ := binding["spec"].(map[string]any)
	name, _ := spec["policyName"].(string)
	return name
}
