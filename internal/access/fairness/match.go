package fairness

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"

	"github.com/anykind/anykind/internal/object/request"
)

// matches reports whether a request belongs to a FlowSchema.
func matches(s *flowcontrolv1.FlowSchemaSpec, q *request.Request) bool {
	for i := range s.Rules {
		r := &s.Rules[i]
		if !slices.ContainsFunc(r.Subjects, func(s flowcontrolv1.Subject) bool { return isSubject(&s, q.User) }) {
			continue
		}
		if q.Info.IsResource {
			for j := range r.ResourceRules {
				if matchesResource(&r.ResourceRules[j], &q.Info) {
					return true
				}
			}
			continue
		}
		for j := range r.NonResourceRules {
			n := &r.NonResourceRules[j]
			if has(n.Verbs, q.Info.Verb) && matchesPath(n.NonResourceURLs, q.Info.Path) {
				return true
			}
		}
	}
	return false
}

func isSubject(s *flowcontrolv1.Subject, u *request.User) bool {
	switch {
	case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil:
		return s.User.Name == flowcontrolv1.NameAll || s.User.Name == u.Name
	case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil:
		return s.Group.Name == flowcontrolv1.NameAll || slices.Contains(u.Groups, s.Group.Name)
	case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
		rest, ok := strings.CutPrefix(u.Name, "system:serviceaccount:")
		if !ok {
			return false
		}
		if rest, ok = strings.CutPrefix(rest, s.ServiceAccount.Namespace); !ok {
			return false
		}
		name, ok := strings.CutPrefix(rest, ":")
		return ok && (s.ServiceAccount.Name == flowcontrolv1.NameAll || s.ServiceAccount.Name == name)
	default:
		return false
	}
}

func matchesResource(r *flowcontrolv1.ResourcePolicyRule, i *request.Info) bool {
	if !has(r.Verbs, i.Verb) || !has(r.APIGroups, i.Group) || !hasResource(r.Resources, i) {
		return false
	}
	if i.Namespace == "" {
		return r.ClusterScope
	}
	return has(r.Namespaces, i.Namespace)
}

// all is the wildcard in lists. It is alone in its list.
const all = "*"

func has(list []string, value string) bool {
	return len(list) == 1 && list[0] == all || slices.Contains(list, value)
}

func hasResource(list []string, i *request.Info) bool {
	if i.Subresource == "" || len(list) == 1 && list[0] == all {
		return has(list, i.Resource)
	}
	return slices.ContainsFunc(list, func(s string) bool {
		resource, sub, _ := strings.Cut(s, "/")
		return resource == i.Resource && sub == i.Subresource
	})
}

// matchesPath reports whether a path is in a list, or below one of its paths.
func matchesPath(list []string, path string) bool {
	for _, p := range list {
		if p == all || p == path {
			return true
		}
		if p = strings.TrimSuffix(p, all); !strings.HasSuffix(p, "/") {
			p += "/"
		}
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	return false
}
