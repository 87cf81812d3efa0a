package rbac

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

func validateRole(c *rule.Check, role, _ *rbacv1.Role) {
	c.Walk(role.Rules, "rules")
	for i := range role.Rules {
		if urls := role.Rules[i].NonResourceURLs; len(urls) > 0 {
			c.At("rules", i, "nonResourceURLs").Invalid(urls, "namespaced rules cannot apply to non-resource URLs")
		}
	}
	validateVerbs(c, role.Rules)
}

// validateVerbs is separate from the other rules, because Kubernetes reports its errors last.
func validateVerbs(c *rule.Check, rules []rbacv1.PolicyRule) {
	for i := range rules {
		if len(rules[i].Verbs) == 0 {
			c.At("rules", i, "verbs").Required(rule.Untagged(c.Gates, "verbs must contain at least one value"))
		}
	}
}

func validateClusterRole(c *rule.Check, role, old *rbacv1.ClusterRole) {
	c.Walk(role.Rules, "rules")
	if role.AggregationRule != nil {
		validateAggregation(c, role, old)
	}
	validateVerbs(c, role.Rules)
}

func validateAggregation(c *rule.Check, role, old *rbacv1.ClusterRole) {
	at := c.At("aggregationRule", "clusterRoleSelectors")
	if len(role.AggregationRule.ClusterRoleSelectors) == 0 {
		at.Required("at least one clusterRoleSelector required if aggregationRule is non-nil")
	}
	options := metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: hasInvalidSelector(old)}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector := &role.AggregationRule.ClusterRoleSelectors[i]
		c.Add(metavalidation.ValidateLabelSelector(selector, options, at.At(i).Path())...)
		if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
			at.At(i).Invalid(nil, "invalid label selector.")
		}
	}
}

// hasInvalidSelector reports whether a stored role has an invalid selector, from before it was
// validated.
func hasInvalidSelector(role *rbacv1.ClusterRole) bool {
	if role == nil || role.AggregationRule == nil {
		return false
	}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		if len(metavalidation.ValidateLabelSelector(&role.AggregationRule.ClusterRoleSelectors[i], metavalidation.LabelSelectorValidationOptions{}, nil)) > 0 {
			return true
		}
	}
	return false
}

// rules are those for types that several kinds use.
var rules = rule.Lazy(
	rule.On(validateRule),
	rule.On(func(c *rule.Check, ref *rbacv1.RoleRef) {
		if ref.Name != "" {
			c.At("name").Invalids(ref.Name, content.IsPathSegmentName(ref.Name))
		}
		if ref.APIGroup != rbacv1.GroupName {
			rule.NotSupported(c.At("apiGroup"), ref.APIGroup, rbacv1.GroupName)
		}
	}),
	rule.Default[rbacv1.Subject](func(obj map[string]any) {
		if of := obj["kind"]; obj["apiGroup"] == nil && (of == rbacv1.UserKind || of == rbacv1.GroupKind) {
			obj["apiGroup"] = rbacv1.GroupName
		}
	}),
)

func validateRule(c *rule.Check, r *rbacv1.PolicyRule) {
	if len(r.NonResourceURLs) > 0 {
		if len(r.APIGroups) > 0 || len(r.Resources) > 0 || len(r.ResourceNames) > 0 {
			c.At("nonResourceURLs").Invalid(r.NonResourceURLs, "rules cannot apply to both regular resources and non-resource URLs")
		}
		return
	}
	if len(r.APIGroups) == 0 {
		c.At("apiGroups").Required("resource rules must supply at least one api group")
	}
	if len(r.Resources) == 0 {
		c.At("resources").Required("resource rules must supply at least one resource")
	}
}

func validateRoleBinding(c *rule.Check, binding, old *rbacv1.RoleBinding) {
	validateRef(c.At("roleRef"), &binding.RoleRef, "Role", "ClusterRole")
	validateSubjects(c.At("subjects"), binding.Subjects, false)
	if old != nil && binding.RoleRef != old.RoleRef {
		c.At("roleRef").Invalid(binding.RoleRef, apivalidation.FieldImmutableErrorMsg)
	}
}

func validateClusterRoleBinding(c *rule.Check, binding, old *rbacv1.ClusterRoleBinding) {
	validateRef(c.At("roleRef"), &binding.RoleRef, "ClusterRole")
	validateSubjects(c.At("subjects"), binding.Subjects, true)
	if old != nil && binding.RoleRef != old.RoleRef {
		c.At("roleRef").Invalid(binding.RoleRef, apivalidation.FieldImmutableErrorMsg)
	}
}

// validateRef validates the roleRef of a binding.
func validateRef(c *rule.Check, ref *rbacv1.RoleRef, kinds ...string) {
	c.Walk(ref)
	for _, of := range kinds {
		if ref.Kind == of {
			return
		}
	}
	rule.NotSupported(c.At("kind"), ref.Kind, kinds...)
}

// validateSubjects validates the subjects of a binding.
func validateSubjects(c *rule.Check, subjects []rbacv1.Subject, namesNamespace bool) {
	c.Walk(subjects)
	for i := range subjects {
		s, c := &subjects[i], c.At(i)
		switch s.Kind {
		case rbacv1.ServiceAccountKind:
			if s.Name != "" {
				c.At("name").Invalids(s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))
			}
			if s.APIGroup != "" {
				rule.NotSupported(c.At("apiGroup"), s.APIGroup, "")
			}
			if namesNamespace && s.Namespace == "" {
				c.At("namespace").Required("")
			}
		case rbacv1.UserKind, rbacv1.GroupKind:
			if s.APIGroup != rbacv1.GroupName {
				rule.NotSupported(c.At("apiGroup"), s.APIGroup, rbacv1.GroupName)
			}
		default:
			rule.NotSupported(c.At("kind"), s.Kind, rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind)
		}
	}
}
