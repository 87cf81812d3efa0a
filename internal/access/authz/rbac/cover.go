package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Missing returns what rules that somebody wants allow and rules that are there do not: the
// smallest rules, each about one thing that can be done.
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

// eachSmallest calls do with the rules of one group, resource, verb and name, or one path and
// verb, that a rule is made of.
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

// covers reports whether a rule allows all that one of the smallest does.
func covers(r, small *rbacv1.PolicyRule) bool {
	return coversAll(r.Verbs, small.Verbs, func(has, v string) bool { return has == rbacv1.VerbAll || has == v }) &&
		coversAll(r.APIGroups, small.APIGroups, func(has, g string) bool { return has == rbacv1.APIGroupAll || has == g }) &&
		coversAll(r.Resources, small.Resources, coversResource) &&
		coversAll(r.NonResourceURLs, small.NonResourceURLs, coversURL) &&
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

// coversResource reports whether what a rule says of resources is about one, which may have a
// subresource.
func coversResource(has, resource string) bool {
	_, subresource, under := strings.Cut(resource, "/")
	return has == rbacv1.ResourceAll || has == resource || under && has == "*/"+subresource
}

// coversURL reports whether what a rule says of paths is about all that another one says.
func coversURL(has, url string) bool {
	return has == url || strings.HasSuffix(has, "*") && strings.HasPrefix(url, strings.TrimRight(has, "*"))
}
