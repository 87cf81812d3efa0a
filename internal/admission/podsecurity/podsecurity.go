// Package podsecurity implements the admission plugin PodSecurity. It rejects pods that violate the
// Pod Security Standard of their namespace, or warns about them.
//
// It knows levels, exemptions, and the writes that need an evaluation. The standards themselves are
// in k8s.io/pod-security-admission/policy.
package podsecurity

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Name is the name of the plugin in Kubernetes.
const Name = "PodSecurity"

// A Plugin enforces the Pod Security Standards.
type Plugin struct {
	config     *configuration
	namespaces *stored.Lister[corev1.Namespace]
	cache      *watchcache.Cache
	pods       *resource.Definition
	metrics    *Metrics
	evaluator  func() policy.Evaluator // created at the first use
}

// New returns the plugin with its part of the configuration file. latest is the release whose standards are the latest
// ones.
func New(config []byte, cache *watchcache.Cache, set *resource.Set, m *Metrics, latest gate.Release) (*Plugin, error) {
	c, err := read(config)
	if err != nil {
		return nil, err
	}
	return &Plugin{
		config: c, cache: cache, metrics: m, pods: set.Lookup("", "pods"),
		namespaces: stored.List[corev1.Namespace](cache, set, corev1.Resource("namespaces")),
		evaluator: sync.OnceValue(func() policy.Evaluator {
			version := api.MajorMinorVersion(1, int(latest))
			e, err := policy.NewEvaluator(policy.DefaultChecks(), &version)
			if err != nil {
				panic(fmt.Errorf("podsecurity: the published checks are not what they have to be: %w", err))
			}
			return e
		}),
	}, nil
}

// Validate checks pods, pod templates, and the labels of namespaces.
func (p *Plugin) Validate(ctx context.Context, a *registry.Admission) error {
	if a.Operation != registry.Create && a.Operation != registry.Update {
		return nil
	}
	switch d := a.Target.Definition; {
	case d.Group == "" && d.Plural == "namespaces":
		if a.Target.Subresource != "" {
			return nil
		}
		return p.validateNamespace(ctx, a)
	case d.Group == "" && d.Plural == "pods":
		if ignored(a.Target.Subresource) {
			return nil
		}
		return p.validatePod(ctx, a)
	default:
		path := templateOf(d)
		if path == nil || a.Target.Subresource != "" {
			return nil
		}
		p.validateTemplate(ctx, a, path)
		return nil
	}
}

// ignored reports whether a subresource of pods cannot affect a standard. Unknown subresources can.
func ignored(subresource string) bool {
	switch subresource {
	case "exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status":
		return true
	}
	return false
}

// templateOf returns the path of the pod template in objects of a kind, or nil.
func templateOf(d *resource.Definition) []string {
	switch d.Group {
	case "":
		switch d.Plural {
		case "replicationcontrollers":
			return []string{"spec", "template"}
		case "podtemplates":
			return []string{"template"}
		}
	case "apps":
		switch d.Plural {
		case "replicasets", "deployments", "statefulsets", "daemonsets":
			return []string{"spec", "template"}
		}
	case "batch":
		switch d.Plural {
		case "jobs":
			return []string{"spec", "template"}
		case "cronjobs":
			return []string{"spec", "jobTemplate", "spec", "template"}
		}
	}
	return nil
}

// exempt reports whether the namespace or the user is exempt, and adds an audit annotation.
func (p *Plugin) exempt(a *registry.Admission) bool {
	switch {
	case slices.Contains(p.config.Exemptions.Namespaces, a.Target.Namespace):
		annotate(a, api.ExemptionReasonAnnotationKey, "namespace")
	case a.User != nil && a.User.Name != "" && slices.Contains(p.config.Exemptions.Usernames, a.User.Name):
		annotate(a, api.ExemptionReasonAnnotationKey, "user")
	default:
		return false
	}
	p.metrics.exempted(a)
	return true
}

func annotate(a *registry.Admission, key, value string) {
	a.Annotate(api.AuditAnnotationPrefix+key, value)
}

// inForce returns the levels of a namespace. errs lists invalid labels; they count as the strictest
// level.
func (p *Plugin) inForce(ctx context.Context, namespace string) (is api.Policy, errs field.ErrorList, err error) {
	n, err := p.namespaces.Get(ctx, "", namespace)
	if err == nil && n == nil {
		err = status.NotFound(corev1.Resource("namespaces"), namespace)
	}
	if err != nil {
		return is, nil, err
	}
	is, errs = api.PolicyToEvaluate(n.Labels, p.config.standards)
	return is, errs, nil
}

// validatePod rejects a pod that violates the enforced level.
func (p *Plugin) validatePod(ctx context.Context, a *registry.Admission) error {
	if p.exempt(a) {
		return nil
	}
	is, errs, err := p.inForce(ctx, a.Target.Namespace)
	switch {
	case err != nil:
		p.metrics.failed(a, true)
		annotate(a, "error", fmt.Sprintf("Internal error occurred: failed to lookup namespace %q: %v", a.Target.Namespace, err))
		return status.Internal(fmt.Errorf("failed to lookup namespace %q", a.Target.Namespace))
	case len(errs) == 0 && is.FullyPrivileged():
		p.metrics.evaluated(a, is.Enforce, "enforce", "allow")
		annotate(a, api.EnforcedPolicyAnnotationKey, "privileged:latest")
		return nil
	case a.Operation == registry.Update:
		old, err := a.Old(ctx)
		if err != nil || !significant(a.Object, old) {
			return err
		}
	}
	pod, err := podOf(a.Object)
	if err != nil {
		p.metrics.failed(a, true)
		return status.BadRequest("failed to decode pod")
	}
	return p.evaluate(a, is, errs, pod, true)
}

// validateTemplate returns warnings for the pods of a template. It rejects nothing: the pods
// themselves are rejected at their creation.
func (p *Plugin) validateTemplate(ctx context.Context, a *registry.Admission, path []string) {
	if p.exempt(a) {
		return
	}
	is, errs, err := p.inForce(ctx, a.Target.Namespace)
	switch {
	case err != nil:
		p.metrics.failed(a, true)
		annotate(a, "error", fmt.Sprintf("failed to lookup namespace %q: %v", a.Target.Namespace, err))
		return
	case len(errs) == 0 && is.Warn.Level == api.LevelPrivileged && is.Audit.Level == api.LevelPrivileged:
		return
	}
	template := any(a.Object)
	for _, field := range path {
		t, _ := template.(object.Tree)
		template = t[field]
	}
	t, ok := template.(object.Tree)
	if !ok {
		return
	}
	pod, err := podOf(t)
	if err != nil {
		p.metrics.failed(a, true)
		annotate(a, "error", fmt.Sprintf("failed to decode object: %v", err))
		return
	}
	_ = p.evaluate(a, is, errs, pod, false) // never an error for a template
}
