// Package match finds the webhooks and policies whose rules and selectors match a write.
//
// It knows rules, selectors, equivalent resources, and the versions in which a webhook or policy
// receives an object. It does not know requests to webhooks, expressions, or their results.
package match

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/anykind/anykind/internal/registry"
)

// Criteria select the writes for a webhook or a policy.
type Criteria struct {
	rules, excluded []admissionv1.NamedRuleWithOperations
	// every matches all resources: only the excluded rules and the selectors restrict it.
	every      bool
	equivalent bool
	namespaces selector
	objects    selector
}

// A selector selects everything if it is nil. An invalid selector has an err.
type selector struct {
	labels.Selector
	err error
}

// newSelector returns a selector. Nil, the default, selects everything.
func newSelector(s *metav1.LabelSelector) selector {
	if s == nil {
		return selector{}
	}
	parsed, err := metav1.LabelSelectorAsSelector(s)
	if err == nil && parsed.Empty() {
		parsed = nil
	}
	return selector{parsed, err}
}

// all reports whether the selector selects everything.
func (s selector) all() bool { return s.Selector == nil && s.err == nil }

// ByRules returns the criteria of a webhook. A webhook without rules matches nothing.
func ByRules(rules []admissionv1.RuleWithOperations, policy *admissionv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) *Criteria {
	c := criteria(policy, namespaces, objects)
	for _, r := range rules {
		c.rules = append(c.rules, admissionv1.NamedRuleWithOperations{RuleWithOperations: r})
	}
	return c
}

// ByResources returns the criteria of a policy or of a binding. Without rules, all resources match
// that are not excluded.
func ByResources(r *admissionv1.MatchResources) *Criteria {
	c := criteria(r.MatchPolicy, r.NamespaceSelector, r.ObjectSelector)
	c.rules, c.excluded, c.every = r.ResourceRules, r.ExcludeResourceRules, len(r.ResourceRules) == 0
	return c
}

func criteria(policy *admissionv1.MatchPolicyType, namespaces, objects *metav1.LabelSelector) *Criteria {
	return &Criteria{
		equivalent: policy != nil && *policy == admissionv1.Equivalent,
		namespaces: newSelector(namespaces), objects: newSelector(objects),
	}
}

// A named is a form in which a write matches a rule, with the resource names of the rule. No names
// match all.
type named struct {
	names []string
	form  *Form
}

func (n *named) is(name string) bool { return len(n.names) == 0 || slices.Contains(n.names, name) }

// matching returns the forms in which a question matches rules. The requested form comes first,
// then the equivalent resources.
func (c *Criteria) matching(rules []admissionv1.NamedRuleWithOperations, q *question, forms []*Form) (found []named) {
	for i := range rules {
		if matches(&rules[i].RuleWithOperations, q, forms[0]) {
			found = append(found, named{rules[i].ResourceNames, forms[0]})
		}
	}
	if !c.equivalent {
		return found
	}
	for i := range rules {
		for _, form := range forms[1:] {
			if matches(&rules[i].RuleWithOperations, q, form) {
				found = append(found, named{rules[i].ResourceNames, form})
			}
		}
	}
	return found
}

// matches reports whether a rule matches a question about a resource in one of its forms.
func matches(r *admissionv1.RuleWithOperations, q *question, f *Form) bool {
	return inScope(r.Scope, f.Definition.Namespaced) &&
		slices.ContainsFunc(r.Operations, func(o admissionv1.OperationType) bool {
			return o == admissionv1.OperationAll || registry.Operation(o) == q.operation
		}) &&
		has(r.APIGroups, f.Resource.Group) && has(r.APIVersions, f.Resource.Version) &&
		slices.ContainsFunc(r.Resources, func(pattern string) bool {
			plural, subresource, _ := strings.Cut(pattern, "/")
			return (plural == "*" || plural == f.Resource.Resource) && (subresource == "*" || subresource == q.subresource)
		})
}

func has(items []string, value string) bool {
	return slices.ContainsFunc(items, func(item string) bool { return item == "*" || item == value })
}

func inScope(scope *admissionv1.ScopeType, namespaced bool) bool {
	switch {
	case scope == nil || *scope == admissionv1.AllScopes:
		return true
	case *scope == admissionv1.NamespacedScope:
		return namespaced
	}
	return *scope == admissionv1.ClusterScope && !namespaced
}
