package flowcontrol

import (
	"fmt"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

var rules = rule.Lazy(
	rule.On(validateSubject),
	rule.On(validateResourceRule),
	rule.On(validateNonResourceRule),
	rule.On(validateLimitResponse),
	rule.On(func(c *rule.Check, r *flowcontrolv1.PolicyRulesWithSubjects) {
		if len(r.Subjects) == 0 {
			c.At("subjects").Required("subjects must contain at least one value")
		}
		if len(r.ResourceRules) == 0 && len(r.NonResourceRules) == 0 {
			c.Required("at least one of resourceRules and nonResourceRules has to be non-empty")
		}
	}),
)

func validateFlowSchema(c *rule.Check, s, _ *flowcontrolv1.FlowSchema) {
	c.Walk(&s.Spec, "spec")
	validatePrecedence(c.At("spec", "matchingPrecedence"), s)
	if d := s.Spec.DistinguisherMethod; d != nil {
		switch d.Type {
		case flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType:
		default:
			rule.NotSupported(c.At("spec", "distinguisherMethod", "type"), d, flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType)
		}
	}
	at := c.At("spec", "priorityLevelConfiguration", "name")
	if level := s.Spec.PriorityLevelConfiguration.Name; level == "" {
		at.Required("must reference a priority level")
	} else {
		at.Invalids(level, apivalidation.NameIsDNSSubdomain(level, false))
	}
	if fixed, ok := fixedSchemas[s.Name]; ok && !equality.Semantic.DeepEqual(s.Spec, fixed) {
		c.At("spec").Invalid(s.Spec, fmt.Sprintf("spec of '%s' must equal the fixed value", s.Name))
	}
	validateFlowSchemaStatus(c, s, nil)
}

func validatePrecedence(c *rule.Check, s *flowcontrolv1.FlowSchema) {
	n := s.Spec.MatchingPrecedence
	if n <= 0 {
		c.Invalid(n, "must be a positive value")
	}
	if n > flowcontrolv1.FlowSchemaMaxMatchingPrecedence {
		c.Invalid(n, fmt.Sprintf("must not be greater than %v", flowcontrolv1.FlowSchemaMaxMatchingPrecedence))
	}
	if n == 1 && s.Name != flowcontrolv1.FlowSchemaNameExempt {
		c.Invalid(n, "only the schema named 'exempt' may have matchingPrecedence 1")
	}
}

func validateFlowSchemaStatus(c *rule.Check, s, _ *flowcontrolv1.FlowSchema) {
	c.Walk(&s.Status, "status")
	validateTypesOnce(c, s.Status.Conditions, func(d flowcontrolv1.FlowSchemaCondition) flowcontrolv1.FlowSchemaConditionType { return d.Type })
}

// validateTypesOnce rejects duplicate condition types.
func validateTypesOnce[C any, T comparable](c *rule.Check, conditions []C, typeOf func(C) T) {
	seen := map[T]bool{}
	for i, condition := range conditions {
		of := typeOf(condition)
		if seen[of] {
			c.At("status", "conditions", i, "type").Duplicate(of)
		}
		seen[of] = true
	}
}

// validateSubject checks that a subject has exactly the field of its kind.
func validateSubject(c *rule.Check, s *flowcontrolv1.Subject) {
	one := func(of flowcontrolv1.SubjectKind, name string, there bool, check func(*rule.Check)) {
		at := c.At(name)
		switch {
		case of == s.Kind && there:
			check(at)
		case of == s.Kind:
			at.Required(fmt.Sprintf("%s is required when subject kind is '%s'", name, of))
		case there:
			at.Forbidden(fmt.Sprintf("%s is forbidden when subject kind is not '%s'", name, of))
		}
	}
	switch s.Kind {
	case flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser, flowcontrolv1.SubjectKindGroup:
		one(flowcontrolv1.SubjectKindServiceAccount, "serviceAccount", s.ServiceAccount != nil, func(c *rule.Check) { validateServiceAccount(c, s.ServiceAccount) })
		one(flowcontrolv1.SubjectKindUser, "user", s.User != nil, func(c *rule.Check) { needsName(c, s.User.Name) })
		one(flowcontrolv1.SubjectKindGroup, "group", s.Group != nil, func(c *rule.Check) { needsName(c, s.Group.Name) })
	default:
		rule.NotSupported(c.At("kind"), s.Kind, flowcontrolv1.SubjectKindGroup, flowcontrolv1.SubjectKindServiceAccount, flowcontrolv1.SubjectKindUser)
	}
}

func needsName(c *rule.Check, name string) {
	if name == "" {
		c.At("name").Required("")
	}
}

func validateServiceAccount(c *rule.Check, s *flowcontrolv1.ServiceAccountSubject) {
	needsName(c, s.Name)
	if s.Name != "" && s.Name != flowcontrolv1.NameAll {
		c.At("name").Invalids(s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))
	}
	if s.Namespace == "" {
		c.At("namespace").Required("must specify namespace for service account")
		return
	}
	c.At("namespace").Invalids(s.Namespace, apivalidation.ValidateNamespaceName(s.Namespace, false))
}

// verbs are the valid verbs in the order of messages.
var verbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"}

func validateVerbs(c *rule.Check, given []string) {
	switch {
	case len(given) == 0:
		c.Required("verbs must contain at least one value")
	case slices.Contains(given, "*"):
		onlyWildcard(c, given, "verbs")
	case slices.ContainsFunc(given, func(v string) bool { return !slices.Contains(verbs, v) }):
		rule.NotSupported(c, given, verbs...)
	}
}

// onlyWildcard rejects a wildcard beside other entries.
func onlyWildcard(c *rule.Check, given []string, others string) {
	if len(given) > 1 && slices.Contains(given, "*") {
		c.Invalid(given, "if '*' is present, must not specify other "+others)
	}
}

func validateNonResourceRule(c *rule.Check, r *flowcontrolv1.NonResourcePolicyRule) {
	validateVerbs(c.At("verbs"), r.Verbs)
	at := c.At("nonResourceURLs")
	switch {
	case len(r.NonResourceURLs) == 0:
		at.Required("nonResourceURLs must contain at least one value")
	case slices.Contains(r.NonResourceURLs, "*"):
		onlyWildcard(at, r.NonResourceURLs, "non-resource URLs")
	default:
		for i, path := range r.NonResourceURLs {
			if detail := wrongPath(path); detail != "" {
				at.At(i).Invalid(path, detail)
			}
		}
	}
}

// wrongPath returns the error of a non-resource URL.
func wrongPath(path string) string {
	stars := strings.Count(path, "*")
	switch {
	case path == "":
		return "must not be empty"
	case path == "/":
		return ""
	case path[0] != '/':
		return "must start with slash"
	case strings.Contains(path, " "):
		return "must not contain white-space"
	case strings.Contains(path, "//"):
		return "must not contain double slash"
	case stars > 1 || stars == 1 && !strings.HasSuffix(path, "/*"):
		return "wildcard can only do suffix matching"
	}
	return ""
}

func validateResourceRule(c *rule.Check, r *flowcontrolv1.ResourcePolicyRule) {
	validateVerbs(c.At("verbs"), r.Verbs)
	if len(r.APIGroups) == 0 {
		c.At("apiGroups").Required("resource rules must supply at least one api group")
	}
	onlyWildcard(c.At("apiGroups"), r.APIGroups, "api groups")
	if len(r.Resources) == 0 {
		c.At("resources").Required("resource rules must supply at least one resource")
	}
	onlyWildcard(c.At("resources"), r.Resources, "resources")
	at := c.At("namespaces")
	switch {
	case len(r.Namespaces) == 0 && !r.ClusterScope:
		at.Required("resource rules that are not cluster scoped must supply at least one namespace")
	case slices.Contains(r.Namespaces, "*"):
		onlyWildcard(at, r.Namespaces, "namespaces")
	default:
		for i, namespace := range r.Namespaces {
			for _, detail := range apivalidation.ValidateNamespaceName(namespace, false) {
				at.At(i).Invalid(namespace, "each member of this list must be '*' or a DNS-1123 label; "+detail)
			}
		}
	}
}
