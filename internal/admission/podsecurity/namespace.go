package podsecurity

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/pod-security-admission/api"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/store/kv"
)

// validateNamespace rejects invalid labels of a namespace. It returns warnings for existing pods
// that violate a stricter level.
func (p *Plugin) validateNamespace(ctx context.Context, a *registry.Admission) error {
	labels := kind.Pairs(a.Object, "metadata", "labels")
	is, errs := api.PolicyToEvaluate(labels, p.config.standards)
	name := object.Name(a.Object)
	invalid := func() error { return status.Invalid(a.Target.Definition.ErrorKind(), name, errs) }
	exempt := slices.Contains(p.config.Exemptions.Namespaces, name)
	if a.Operation == registry.Create {
		if len(errs) > 0 {
			return invalid()
		}
		if exempt {
			p.warnExempt(a, name, is, labels)
		}
		return nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	was, before := api.PolicyToEvaluate(kind.Pairs(old, "metadata", "labels"), p.config.standards)
	switch {
	case len(errs) > 0 && status.Join(errs) != status.Join(before):
		return invalid()
	case is.Enforce == was.Enforce, is.Enforce.Level == api.LevelPrivileged,
		is.Enforce.Version == was.Enforce.Version && api.CompareLevels(is.Enforce.Level, was.Enforce.Level) < 1:
		return nil
	case exempt:
		p.warnExempt(a, name, is, labels)
		return nil
	}
	for _, warning := range p.violations(ctx, name, is.Enforce) {
		a.Warn(warning)
	}
	return nil
}

// warnExempt warns that the labels of an exempt namespace have no effect.
func (p *Plugin) warnExempt(a *registry.Admission, name string, is api.Policy, labels map[string]string) {
	if is.FullyPrivileged() || is.Equivalent(&p.config.standards) {
		return
	}
	var levels []string
	for _, mode := range []struct {
		name           string
		of             api.LevelVersion
		level, version string
	}{
		{"enforce", is.Enforce, api.EnforceLevelLabel, api.EnforceVersionLabel},
		{"audit", is.Audit, api.AuditLevelLabel, api.AuditVersionLabel},
		{"warn", is.Warn, api.WarnLevelLabel, api.WarnVersionLabel},
	} {
		_, level := labels[mode.level]
		_, version := labels[mode.version]
		if mode.of.Level != api.LevelPrivileged && (level || version) {
			levels = append(levels, mode.name+"="+mode.of.String())
		}
	}
	a.Warn(fmt.Sprintf("namespace %q is exempt from Pod Security, and the policy (%s) will be ignored", name, strings.Join(levels, ", ")))
}

const (
	// most limits the number of pods that are checked for a namespace.
	most = 3000
	// evaluationTimeout limits the time of that check. A shorter deadline of the client limits it further.
	evaluationTimeout = time.Second
)

// violations describes the pods of a namespace that violate a level. Pods of one controller are
// alike, so one of each controller is checked first.
func (p *Plugin) violations(ctx context.Context, namespace string, v api.LevelVersion) []string {
	wait := evaluationTimeout
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	pods, err := p.podsOf(ctx, namespace)
	if err != nil {
		return []string{"failed to list pods while checking new PodSecurity enforce level"}
	}
	total := len(pods)
	pods = pods[:min(total, most)]
	checked := len(pods)
	reasons := map[string][]string{} // names of pods, by violation
	for i, pod := range pods {
		if result := p.check(v, pod); !result.Allowed {
			reason := result.ForbiddenReason()
			reasons[reason] = append(reasons[reason], pod.Name)
		}
		if ctx.Err() != nil {
			checked = i + 1
			break
		}
	}
	var warnings []string
	if checked < total {
		warnings = append(warnings, fmt.Sprintf("new PodSecurity enforce level only checked against the first %d of %d existing pods", checked, total))
	}
	if len(reasons) == 0 {
		return warnings
	}
	warnings = append(warnings, fmt.Sprintf("existing pods in namespace %q violate the new PodSecurity enforce level %q", namespace, v.String()))
	return append(warnings, perReason(reasons)...)
}

// perReason describes the pods of each violation, sorted.
func perReason(reasons map[string][]string) []string {
	var out []string
	for reason, names := range reasons {
		first := slices.Min(names)
		switch n := len(names) - 1; n {
		case 0:
			out = append(out, fmt.Sprintf("%s: %s", first, reason))
		case 1:
			out = append(out, fmt.Sprintf("%s (and 1 other pod): %s", first, reason))
		default:
			out = append(out, fmt.Sprintf("%s (and %d other pods): %s", first, n, reason))
		}
	}
	slices.Sort(out)
	return out
}

// podsOf returns the pods of a namespace that are not exempt. Pods without a controller and one pod
// of each controller come first.
func (p *Plugin) podsOf(ctx context.Context, namespace string) ([]*corev1.PodTemplateSpec, error) {
	snapshot, err := p.cache.Resource(p.pods.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	var first, others []*corev1.PodTemplateSpec
	seen := map[types.UID]bool{}
	for o := range snapshot.Scan(p.pods.NamespacePrefix(namespace), "") {
		pod := &corev1.PodTemplateSpec{}
		data, err := o.JSON()
		if err != nil && o.Err() == nil {
			return nil, err
		}
		if err != nil || json.Unmarshal(data, pod) != nil || p.exemptClass(pod) {
			continue
		}
		controller := metav1.GetControllerOfNoCopy(pod)
		if controller != nil && seen[controller.UID] {
			others = append(others, pod)
			continue
		}
		if controller != nil {
			seen[controller.UID] = true
		}
		first = append(first, pod)
	}
	return append(first, others...), nil
}
