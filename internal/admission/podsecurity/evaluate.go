package podsecurity

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
)

// podOf decodes the metadata and the spec of a pod or a pod template.
func podOf(t object.Tree) (*corev1.PodTemplateSpec, error) {
	pod := &corev1.PodTemplateSpec{}
	return pod, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Tree{"metadata": t["metadata"], "spec": t["spec"]}, pod)
}

// exemptClass reports whether the RuntimeClass of a pod is exempt.
func (p *Plugin) exemptClass(pod *corev1.PodTemplateSpec) bool {
	class := pod.Spec.RuntimeClassName
	return class != nil && *class != "" && slices.Contains(p.config.Exemptions.RuntimeClasses, *class)
}

// evaluate evaluates a pod against the policy of its namespace. With enforced, a violation of the
// enforced level is an error. Violations of the audit level are audit annotations. Violations of
// the warn level are warnings, unless there is an error.
func (p *Plugin) evaluate(a *registry.Admission, is api.Policy, errs field.ErrorList, pod *corev1.PodTemplateSpec, enforced bool) error {
	if p.exemptClass(pod) {
		p.metrics.exempted(a)
		annotate(a, api.ExemptionReasonAnnotationKey, "runtimeClass")
		return nil
	}
	if len(errs) > 0 {
		p.metrics.failed(a, false)
		annotate(a, "error", fmt.Sprintf("Failed to parse policy: %v", errs.ToAggregate()))
	}
	known := map[api.LevelVersion]policy.AggregateCheckResult{}
	against := func(v api.LevelVersion) policy.AggregateCheckResult {
		result, ok := known[v]
		if !ok {
			result = p.check(v, pod)
			known[v] = result
		}
		return result
	}
	var refused error
	if enforced {
		annotate(a, api.EnforcedPolicyAnnotationKey, is.Enforce.String())
		result, decision := against(is.Enforce), "allow"
		if !result.Allowed {
			decision = "deny"
			refused = status.Forbidden(a.Target.Definition.GroupResource(), a.Target.Name,
				fmt.Errorf("violates PodSecurity %q: %s", is.Enforce.String(), result.ForbiddenDetail()))
		}
		p.metrics.evaluated(a, is.Enforce, "enforce", decision)
	}
	if result := against(is.Audit); !result.Allowed {
		p.metrics.evaluated(a, is.Audit, "audit", "deny")
		annotate(a, api.AuditViolationsAnnotationKey, fmt.Sprintf("would violate PodSecurity %q: %s", is.Audit.String(), result.ForbiddenDetail()))
	}
	if refused != nil {
		return refused
	}
	if result := against(is.Warn); !result.Allowed {
		p.metrics.evaluated(a, is.Warn, "warn", "deny")
		a.Warn(fmt.Sprintf("would violate PodSecurity %q: %s", is.Warn.String(), result.ForbiddenDetail()))
	}
	return nil
}

func (p *Plugin) check(v api.LevelVersion, pod *corev1.PodTemplateSpec) policy.AggregateCheckResult {
	if v.Level == api.LevelPrivileged {
		return policy.AggregateCheckResult{Allowed: true}
	}
	return policy.AggregateCheckResults(p.evaluator().EvaluatePod(v, &pod.ObjectMeta, &pod.Spec))
}

// significant reports whether an update of a pod can change the result of an evaluation: it adds or
// removes containers, or changes images. The other fields that a standard reads are immutable.
func significant(pod, old object.Tree) bool {
	for _, list := range [...]string{"containers", "initContainers"} {
		now, was := kind.List(pod, "spec", list), kind.List(old, "spec", list)
		if len(now) != len(was) {
			return true
		}
		for i := range now {
			if image(now[i]) != image(was[i]) {
				return true
			}
		}
	}
	was := map[string]any{}
	for _, c := range kind.List(old, "spec", "ephemeralContainers") {
		was[name(c)] = c
	}
	for _, c := range kind.List(pod, "spec", "ephemeralContainers") {
		if before, ok := was[name(c)]; !ok || image(c) != image(before) {
			return true
		}
	}
	return false
}

func name(container any) string {
	t, _ := container.(object.Tree)
	return kind.Text(t, "name")
}

func image(container any) string {
	t, _ := container.(object.Tree)
	return kind.Text(t, "image")
}
