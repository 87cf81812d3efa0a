package authz

import (
	"context"
	"errors"

	rbacv1 "k8s.io/api/rbac/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/request"
)

// A Lister is an Authorizer that can say beforehand what somebody may do in a namespace.
type Lister interface {
	// RulesFor returns the rules of a user. Besides an error there are those that could be
	// found. ErrUnlistable says that there may be more.
	RulesFor(ctx context.Context, u *request.User, namespace string) ([]rbacv1.PolicyRule, error)
}

// ErrUnlistable says that an authorizer allows things that it cannot list.
var ErrUnlistable = errors.New("does not support user rule resolution")

// RulesFor returns the rules of a user as far as an authorizer can list them. incomplete says
// that it may allow more.
func RulesFor(ctx context.Context, z Authorizer, u *request.User, namespace string) (rules []rbacv1.PolicyRule, incomplete bool, err error) {
	l, ok := z.(Lister)
	if !ok {
		return nil, false, nil
	}
	rules, err = l.RulesFor(ctx, u, namespace)
	return rules, errors.Is(err, ErrUnlistable), err
}

// RulesFor implements Lister: the rules of all who can list some.
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
