package rbac

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/access/authz"
	authzrbac "github.com/anykind/anykind/internal/access/authz/rbac"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// A guard prevents privilege escalation: users can only grant permissions that they have, unless
// they have the verb escalate or bind. Writes without a request, such as those of a controller, are
// not checked.
type guard struct {
	authorizer authz.Authorizer
	roles      *authzrbac.Authorizer
}

// asking returns the request of a change to check, or nil. A change of owner references and
// finalizers only, as by the garbage collector, grants nothing.
func asking(ctx context.Context, c *resource.Change) *request.Request {
	q := request.From(ctx)
	if q == nil || q.User == nil || q.User.In(request.Masters) || c.Old != nil && onlyLetsGo(c.Object, c.Old) {
		return nil
	}
	return q
}

// onlyLetsGo reports whether only owner references and finalizers change.
func onlyLetsGo(obj, old object.Tree) bool {
	same := func(t object.Tree) object.Tree {
		t = object.CloneTree(t)
		for _, field := range []string{"ownerReferences", "finalizers", "selfLink", "managedFields"} {
			delete(object.Metadata(t), field)
		}
		return withoutEmpty(t)
	}
	return reflect.DeepEqual(same(obj), same(old))
}

// withoutEmpty removes empty values.
func withoutEmpty(t object.Tree) object.Tree {
	for key, value := range t {
		switch v := value.(type) {
		case nil:
			delete(t, key)
		case []any:
			if len(v) == 0 {
				delete(t, key)
			}
		case object.Tree:
			if len(withoutEmpty(v)) == 0 {
				delete(t, key)
			}
		}
	}
	return t
}

func (g *guard) role(ctx context.Context, c *resource.Change) error {
	q := asking(ctx, c)
	if q == nil || g.mayEscalate(ctx, q) {
		return nil
	}
	return refused(c, "roles", g.confirm(ctx, q, c.Namespace, kind.ValueOf[rbacv1.Role](c.Object).Rules))
}

// everything are the permissions that an aggregated role needs, since it can receive any rules.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func (g *guard) clusterRole(ctx context.Context, c *resource.Change) error {
	q := asking(ctx, c)
	if q == nil || g.mayEscalate(ctx, q) {
		return nil
	}
	err := g.confirm(ctx, q, c.Namespace, kind.ValueOf[rbacv1.ClusterRole](c.Object).Rules)
	if err == nil && (aggregates(c.Object) || aggregates(c.Old)) && g.confirm(ctx, q, c.Namespace, everything) != nil {
		err = errors.New("must have cluster-admin privileges to use the aggregationRule")
	}
	return refused(c, "clusterroles", err)
}

func aggregates(role object.Tree) bool {
	return len(kind.List(role, "aggregationRule", "clusterRoleSelectors")) > 0
}

func (g *guard) binding(ctx context.Context, c *resource.Change) error {
	q := asking(ctx, c)
	if q == nil {
		return nil
	}
	ref := kind.ValueOf[rbacv1.RoleBinding](c.Object).RoleRef // both kinds have a RoleRef
	if g.mayBind(ctx, q, &ref, c.Namespace) {
		return nil
	}
	rules, err := g.roles.RulesOf(ctx, ref, c.Namespace)
	if err != nil {
		return worded(err, q)
	}
	plural := "clusterrolebindings"
	if c.Namespace != "" {
		plural = "rolebindings"
	}
	return refused(c, plural, g.confirm(ctx, q, c.Namespace, rules))
}

// refused returns a Forbidden error for a reason, or nil.
func refused(c *resource.Change, plural string, reason error) error {
	if reason == nil {
		return nil
	}
	return status.Forbidden(schema.GroupResource{Group: rbacv1.GroupName, Resource: plural}, object.Name(c.Object), reason)
}

// mayEscalate reports whether the user has the verb escalate for roles.
func (g *guard) mayEscalate(ctx context.Context, q *request.Request) bool {
	info := request.Info{
		IsResource: true, Verb: "escalate", Group: q.Info.Group, Version: "*", Resource: q.Info.Resource,
		Namespace: q.Info.Namespace, Name: q.Info.Name,
	}
	decision, _, _ := g.authorizer.Authorize(ctx, &authz.Attributes{User: q.User, Info: info})
	return decision == authz.Allow
}

// mayBind reports whether the user has the verb bind for the role.
func (g *guard) mayBind(ctx context.Context, q *request.Request, ref *rbacv1.RoleRef, namespace string) bool {
	info := request.Info{IsResource: true, Verb: "bind", Group: ref.APIGroup, Version: "*", Name: ref.Name, Namespace: namespace}
	switch ref.Kind {
	case "ClusterRole":
		info.Resource = "clusterroles"
	case "Role":
		info.Resource = "roles"
	default:
		return false
	}
	decision, _, _ := g.authorizer.Authorize(ctx, &authz.Attributes{User: q.User, Info: info})
	return decision == authz.Allow
}

// confirm returns an error that lists the rules which the user does not have in a namespace.
func (g *guard) confirm(ctx context.Context, q *request.Request, namespace string, rules []rbacv1.PolicyRule) error {
	has, unresolved := g.roles.RulesFor(ctx, q.User, namespace)
	missing := authzrbac.Missing(has, rules)
	if len(missing) == 0 {
		return nil
	}
	var lines []string
	for _, r := range together(missing) {
		lines = append(lines, inWords(&r))
	}
	slices.Sort(lines)
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		q.User.Name, q.User.Groups, strings.Join(slices.Compact(lines), "\n"))
	if unresolved != nil {
		message += fmt.Sprintf("; resolution errors: %v", []error{worded(unresolved, q)})
	}
	return errors.New(message)
}

// worded rewords errors about missing roles as Kubernetes does here, with the resource of the
// request.
func worded(err error, q *request.Request) error {
	var several utilerrors.Aggregate
	if errors.As(err, &several) {
		var all []error
		for _, e := range several.Errors() {
			all = append(all, worded(e, q))
		}
		return utilerrors.NewAggregate(all)
	}
	var missing *status.Error
	if errors.As(err, &missing) && status.Is(err, metav1.StatusReasonNotFound) {
		return status.NotFound(schema.GroupResource{Group: q.Info.Group, Resource: q.Info.Resource}, missing.ErrStatus.Details.Name)
	}
	return err
}

// together joins rules of one resource and name that differ only in the verb.
func together(small []rbacv1.PolicyRule) (joined []rbacv1.PolicyRule) {
	type about struct {
		group, resource, name string
		named                 bool
	}
	at := map[about]int{}
	for _, r := range small {
		if len(r.NonResourceURLs) > 0 {
			joined = append(joined, r)
			continue
		}
		a := about{r.APIGroups[0], r.Resources[0], strings.Join(r.ResourceNames, ""), len(r.ResourceNames) > 0}
		if i, ok := at[a]; ok {
			joined[i].Verbs = append(joined[i].Verbs, r.Verbs...)
			continue
		}
		at[a] = len(joined)
		joined = append(joined, r)
	}
	return joined
}

// inWords formats a rule without empty fields.
func inWords(r *rbacv1.PolicyRule) string {
	var parts []string
	for _, field := range []struct {
		name   string
		values []string
	}{
		{"APIGroups", r.APIGroups}, {"Resources", r.Resources}, {"NonResourceURLs", r.NonResourceURLs},
		{"ResourceNames", r.ResourceNames}, {"Verbs", r.Verbs},
	} {
		if len(field.values) > 0 {
			parts = append(parts, fmt.Sprintf("%s:%q", field.name, field.values))
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}
