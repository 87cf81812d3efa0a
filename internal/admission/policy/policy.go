// Package policy implements the admission plugins for policies in CEL: ValidatingAdmissionPolicy
// and MutatingAdmissionPolicy.
//
// It knows stored policies and bindings, matches them to writes, and acts on the results of
// expressions. celpolicy evaluates expressions, and match evaluates rules.
package policy

import (
	"context"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/admission/match"
	"github.com/anykind/anykind/internal/admission/outcome"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Dependencies are the dependencies of the plugins.
type Dependencies struct {
	Cache *watchcache.Cache
	// Core are the built-in kinds, Catalog all served kinds.
	Core    *resource.Set
	Catalog *resource.Catalog
	// Decode decodes a stored object in a version of its kind, for parameters.
	Decode     func(ctx context.Context, d *resource.Definition, v *resource.Version, o *watchcache.Object) (object.Tree, error)
	Authorizer authz.Authorizer
	Log        *slog.Logger
	// Metrics count decisions of policies.
	Metrics *Metrics
	// Manifests are the metrics of policies in files.
	Manifests *manifest.Metrics
	// Outcomes remembers the evaluations.
	Outcomes *outcome.Log
	// Shared is common to both kinds of policies.
	Shared *celpolicy.Shared
}

// A plugin is the common part of both plugins.
type plugin[C any] struct {
	policies[C]
	parts      Dependencies
	step       string // in outcomes
	params     params
	namespaces *stored.Lister[corev1.Namespace]
	folder     *manifest.Folder // of manifest files; nil without them
}

// kinds are the names for one plugin: that of the plugin and of the kind of its policies, the resources of
// policies and bindings, and the step in outcomes.
type kinds struct{ plugin, policies, bindings, step string }

func (p *plugin[C]) init(parts Dependencies, c *Config, of kinds, compile func(*celpolicy.Shared, *policySpec) *C) error {
	p.parts, p.step = parts, of.step
	p.params.Dependencies = parts
	p.namespaces = stored.List[corev1.Namespace](parts.Cache, parts.Core, corev1.Resource("namespaces"))
	p.compile = func(s *policySpec) *C { return compile(parts.Shared, s) }
	p.log = parts.Log
	p.follow(parts.Cache, parts.Core, resourceOf(of.policies), resourceOf(of.bindings))
	return p.load(of, c)
}

// remember adds the outcome of a policy for a binding. The binding of an error of the policy itself is "".
func (p *plugin[C]) remember(w *match.Write, of *policy[C], binding string, r outcome.Report) {
	p.parts.Outcomes.Add(w.Admission, outcome.Origin{Step: p.step, Configuration: of.name, Name: binding}, r)
}

// group is the group of policies.
const group = "admissionregistration.k8s.io"

func resourceOf(plural string) schema.GroupResource {
	return schema.GroupResource{Group: group, Resource: plural}
}

// exempt reports whether d is a kind of policies. Policies do not apply to those kinds: a policy
// that rejects everything could not be deleted.
func exempt(d *resource.Definition) bool {
	if d.Group != group {
		return false
	}
	switch d.Plural {
	case "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings":
		return true
	}
	return false
}

// A found policy matches a write, and so do its bindings.
type found[C any] struct {
	policy   *match.Candidate[*policy[C]]
	bindings []match.Candidate[*binding]
}

// find returns the policies that match a write, those from files first. Policies of the API never
// apply to exempt kinds. Policies from files apply to policies, too: they can be removed on disk.
func (p *plugin[C]) find(ctx context.Context, a *registry.Admission) (all []found[C], err error) {
	d := a.Target.Definition
	if match.Virtual(d) {
		return nil, nil
	}
	all = p.files.find(p.parts.Catalog, a, nil)
	if exempt(d) {
		return all, nil
	}
	if err := p.follower.RefreshOnce(ctx); err != nil {
		return nil, registry.StorageError(err)
	}
	if err := p.unreadable.Err(); err != nil {
		return nil, a.Forbidden(err)
	}
	return p.stored.find(p.parts.Catalog, a, all), nil
}

// namespace returns the namespace for expressions, nil for a write of a Namespace.
func (p *plugin[C]) namespace(ctx context.Context, w *match.Write) (*corev1.Namespace, error) {
	if w.InNamespace() == "" || celpolicy.RequestKind(w.Admission) == corev1.SchemeGroupVersion.WithKind("Namespace") {
		return nil, nil
	}
	return w.Namespace(ctx)
}
