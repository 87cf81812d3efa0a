// Package rbac has the built-in kinds of rbac.authorization.k8s.io: roles and bindings.
//
// It validates them, and prevents privilege escalation. internal/access/authz/rbac authorizes
// requests with them.
package rbac

import (
	"context"
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/anykind/anykind/internal/access/authz"
	authzrbac "github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group. authorizer checks the verbs escalate and bind, and
// has resolves the rules of a user.
func Definitions(authorizer authz.Authorizer, has *authzrbac.Authorizer) []*resource.Definition {
	g := &guard{authorizer, has}
	guarded := func(d *resource.Definition, authorize func(context.Context, *resource.Change) error) *resource.Definition {
		d.Authorize = authorize
		return d
	}
	return []*resource.Definition{
		guarded(clusterRoleBindings(), g.binding), guarded(clusterRoles(), g.clusterRole),
		guarded(roleBindings(), g.binding), guarded(roles(), g.role),
	}
}

// strategy returns the strategy of all four kinds. Their names may be any valid path segment.
func strategy() resource.Strategy {
	return resource.Strategy{
		AllowCreateOnUpdate: true, AllowUnconditionalUpdate: true,
		ValidateName: func(name string, _ bool) []string { return content.IsPathSegmentName(name) },
	}
}

func roles() *resource.Definition {
	return kind.Kind[*rbacv1.Role, *rbacv1.RoleList]{
		Definition: resource.Definition{
			Group: rbacv1.GroupName, Plural: "roles", Namespaced: true, Strategy: strategy(),
		},
		Rules: rules, Validate: validateRole,
		Columns: createdAt,
	}.New()
}

func clusterRoles() *resource.Definition {
	return kind.Kind[*rbacv1.ClusterRole, *rbacv1.ClusterRoleList]{
		Definition: resource.Definition{Group: rbacv1.GroupName, Plural: "clusterroles", Strategy: strategy()},
		Rules:      rules, Validate: validateClusterRole,
		Columns: createdAt,
	}.New()
}

// createdAt is the column of kinds without other columns.
const createdAt = `Created At  date  .metadata.creationTimestamp`

func roleBindings() *resource.Definition {
	return kind.Kind[*rbacv1.RoleBinding, *rbacv1.RoleBindingList]{
		Definition: resource.Definition{
			Group: rbacv1.GroupName, Plural: "rolebindings", Namespaced: true, Strategy: strategy(),
		},
		Rules: rules, Validate: validateRoleBinding,
		Columns: `
			Role             string       role             roleRef
			Age
			Users            string wide  users            "Users in the roleBinding"
			Groups           string wide  groups           "Groups in the roleBinding"
			ServiceAccounts  string wide  serviceAccounts  "ServiceAccounts in the roleBinding"
		`,
		Cells: bindingCells, Docs: kind.Docs{"roleRef": "roleRef can reference a Role in the current namespace or a ClusterRole in the global namespace. " + unresolved},
	}.New()
}

func clusterRoleBindings() *resource.Definition {
	return kind.Kind[*rbacv1.ClusterRoleBinding, *rbacv1.ClusterRoleBindingList]{
		Definition: resource.Definition{Group: rbacv1.GroupName, Plural: "clusterrolebindings", Strategy: strategy()},
		Rules:      rules, Validate: validateClusterRoleBinding,
		Columns: `
			Role             string       role             roleRef
			Age
			Users            string wide  users            "Users in the clusterRoleBinding"
			Groups           string wide  groups           "Groups in the clusterRoleBinding"
			ServiceAccounts  string wide  serviceAccounts  "ServiceAccounts in the clusterRoleBinding"
		`,
		Cells: bindingCells, Docs: kind.Docs{"roleRef": "roleRef can only reference a ClusterRole in the global namespace. " + unresolved},
	}.New()
}

// unresolved ends the documentation of roleRef. Kubernetes shows that of v1beta1.
const unresolved = "If the RoleRef cannot be resolved, the Authorizer must return an error."

var bindingCells = kind.Cells{
	"role": func(obj map[string]any) any {
		return kind.Text(obj, "roleRef", "kind") + "/" + kind.Text(obj, "roleRef", "name")
	},
	"users":           subjects(rbacv1.UserKind),
	"groups":          subjects(rbacv1.GroupKind),
	"serviceAccounts": subjects(rbacv1.ServiceAccountKind),
}

// subjects returns the cell with the names of a binding's subjects of one kind.
func subjects(of string) func(map[string]any) any {
	return func(obj map[string]any) any {
		var names []string
		for _, s := range kind.List(obj, "subjects") {
			subject, _ := s.(map[string]any)
			if kind.Text(subject, "kind") != of {
				continue
			}
			name := kind.Text(subject, "name")
			if of == rbacv1.ServiceAccountKind {
				name = fmt.Sprintf("%s/%s", kind.Text(subject, "namespace"), name)
			}
			names = append(names, name)
		}
		return strings.Join(names, ", ")
	}
}
