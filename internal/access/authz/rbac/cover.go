package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/anykind/anykind/internal/access/authz"
)

// Missing returns the part of wanted that the rules of there do not cover, as rules with a single
// group, resource, verb and name each.
func Missing(there, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	var missing []rbacv1.PolicyRule
	for i := range wanted {
		eachSmallest(&wanted[i], func(small *rbacv1.PolicyRule) {
			if !slices.ContainsFunc(there, func(r rbacv1.PolicyRule) bool { return covers(&r, small) }) {
				missing = append(missing, *small)
			}
		})
	}
	return missing
}

// eachSmallest calls do for each combination of group, resource, verb and name, or of path and verb,
// in a rule.
func eachSmallest(r *rbacv1.PolicyRule, do func(*rbacv1.PolicyRule)) {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				small := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{verb}}
				if len(r.ResourceNames) == 0 {
					do(&small)
				}
				for _, name := range r.ResourceNames {
					small.ResourceNames = []string{name}
					do(&small)
				}
			}
		}
	}
	for _, url := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			do(&rbacv1.PolicyRule{NonResourceURLs: []string{url}, Verbs: []string{verb}})
		}
	}
}

// covers reports whether a rule covers a single combination.
func covers(r, small *rbacv1.PolicyRule) bool {
	return coversAll(r.Verbs, small.Verbs, func(has, v string) bool { return has == rbacv1.VerbAll || has == v }) &&
		coversAll(r.APIGroups, small.APIGroups, func(has, g string) bool { return has == rbacv1.APIGroupAll || has == g }) &&
		coversAll(r.Resources, small.Resources, coversResource) &&
		coversAll(r.NonResourceURLs, small.NonResourceURLs, authz.CoversPath) &&
		(len(r.ResourceNames) == 0 || len(small.ResourceNames) > 0 && slices.Contains(r.ResourceNames, small.ResourceNames[0]))
}

func coversAll(has, wanted []string, covers func(has, wanted string) bool) bool {
	for _, w := range wanted {
		if !slices.ContainsFunc(has, func(h string) bool { return covers(h, w) }) {
			return false
		}
	}
	return true
}

// coversResource reports whether a resource of a rule covers a resource, with or without a subresource.
func coversResource(has, resource string) bool {
	_, subresource, under := strings.Cut(resource, "/")
	return has == rbacv1.ResourceAll || has == resource || under && has == "*/"+subresource
}
