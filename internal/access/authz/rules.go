package authz

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/request"
)

// A Lister is an Authorizer that can list the rules of a user in a namespace.
type Lister interface {
	// RulesFor returns the rules of a user. An error comes with the rules that were found.
	// ErrUnlistable reports that the list is incomplete.
	RulesFor(ctx context.Context, u *request.User, namespace string) ([]rbacv1.PolicyRule, error)
}

// ErrUnlistable reports that an authorizer cannot list all rules.
var ErrUnlistable = errors.New("does not support user rule resolution")

// RulesFor returns the rules of a user that an authorizer can list. incomplete reports that there
// may be more.
func RulesFor(ctx context.Context, z Authorizer, u *request.User, namespace string) (rules []rbacv1.PolicyRule, incomplete bool, err error) {
	l, ok := z.(Lister)
	if !ok {
		return nil, false, nil
	}
	rules, err = l.RulesFor(ctx, u, namespace)
	return rules, errors.Is(err, ErrUnlistable), err
}

// RulesFor implements Lister: the rules of all Listers.
func (u Union) RulesFor(ctx context.Context, of *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	var all []rbacv1.PolicyRule
	var errs []error
	for i := range u {
		l, ok := u[i].Authorizer.(Lister)
		if !ok {
			continue
		}
		rules, err := l.RulesFor(ctx, of, namespace)
		all = append(all, rules...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	return all, utilerrors.NewAggregate(errs)
}

// RulesFor implements Lister.
func (AlwaysAllow) RulesFor(context.Context, *request.User, string) ([]rbacv1.PolicyRule, error) {
	everything := []string{"*"}
	return []rbacv1.PolicyRule{
		{Verbs: everything, APIGroups: everything, Resources: everything},
		{Verbs: everything, NonResourceURLs: everything},
	}, nil
}

// RulesFor implements Lister.
func (c *Current) RulesFor(ctx context.Context, u *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	z := c.current.Load()
	if z == nil {
		return nil, nil
	}
	l, ok := (*z).(Lister)
	if !ok {
		return nil, nil
	}
	return l.RulesFor(ctx, u, namespace)
}
