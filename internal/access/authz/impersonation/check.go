package impersonation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
)

// A check authorizes all parts of an impersonated user, in one mode.
type check struct {
	*mode
	authorizer authz.Authorizer
	metrics    *metrics
	asking     *request.User
}

// many is the number of groups or extras from which on a check for all of them comes first.
const many = 4

const (
	nodes          = "system:nodes" // the group of all nodes
	authentication = "authentication.k8s.io"
)

// as returns the impersonated user, or the error of the first denial.
func (c *check) as(ctx context.Context, wanted *request.User, attrs *authz.Attributes) (*As, error) {
	if c.constrained() {
		on := *attrs
		on.User, on.Verb = c.asking, c.verbOn(attrs.Verb)
		if err := c.allowed(ctx, &on); err != nil {
			return nil, err
		}
	}
	for _, want := range []func(context.Context, *request.User) error{c.name, c.uid, c.groups, c.extra} {
		if err := want(ctx, wanted); err != nil {
			return nil, err
		}
	}
	u := *wanted
	u.Groups = c.groupsOf(wanted)
	switch {
	case u.Name == request.Anonymous:
		join(&u, request.Unauthenticated)
	case !u.In(request.Unauthenticated):
		join(&u, request.Authenticated)
	}
	as := &As{User: &u}
	if c.constrained() {
		as.Constraint = c.verb()
	}
	return as, nil
}

// allowed asks the authorizer, and returns the error of a denial.
func (c *check) allowed(ctx context.Context, a *authz.Attributes) error {
	begun := time.Now()
	err := authz.Require(ctx, c.authorizer, a)
	c.metrics.authorized(c.mode, err == nil, begun)
	return err
}

// wants returns the attributes of the impersonation of one part.
func (c *check) wants(group, resource, name string) *authz.Attributes {
	return &authz.Attributes{User: c.asking, Info: request.Info{
		IsResource: true, Verb: c.verb(), Group: group, Version: "v1", Resource: resource, Name: name,
	}}
}

// group returns the API group of users, groups, nodes and service accounts in the checks.
func (c *check) group() string {
	if c.constrained() {
		return authentication
	}
	return ""
}

// groupsOf returns the requested groups, or else those that belong to the name.
func (c *check) groupsOf(wanted *request.User) []string {
	namespace, _, err := request.SplitServiceAccount(wanted.Name)
	switch {
	case len(wanted.Groups) > 0:
		return wanted.Groups
	case c.constrained() && nodeOf(wanted.Name) != "":
		return []string{nodes}
	case err == nil:
		return request.ServiceAccountGroups(namespace)
	default:
		return nil
	}
}

// join adds a group. It copies the groups of u: another user may share them.
func join(u *request.User, group string) {
	if !u.In(group) {
		u.Groups = append(slices.Clip(u.Groups), group)
	}
}

func (c *check) name(ctx context.Context, wanted *request.User) error {
	a := c.wants(c.group(), "users", wanted.Name)
	if node := nodeOf(wanted.Name); c.constrained() && node != "" {
		a.Resource, a.Name = "nodes", node
		if c.own {
			a.Name = "*"
		}
	}
	if namespace, name, err := request.SplitServiceAccount(wanted.Name); err == nil {
		a.Resource, a.Namespace, a.Name = "serviceaccounts", namespace, name
	}
	return c.allowed(ctx, a)
}

func (c *check) uid(ctx context.Context, wanted *request.User) error {
	if wanted.UID == "" {
		return nil
	}
	return c.allowed(ctx, c.wants(authentication, "uids", wanted.UID))
}

func (c *check) groups(ctx context.Context, wanted *request.User) error {
	a := c.wants(c.group(), "groups", "")
	if c.constrained() {
		switch {
		case slices.Contains(wanted.Groups, ""):
			return authz.Forbidden(a, "impersonating the empty string group is not allowed")
		case wanted.In(request.Masters):
			a.Name = request.Masters
			return authz.Forbidden(a, "impersonating the system:masters group is not allowed")
		}
		if a.Name = "*"; len(wanted.Groups) >= many && c.allowed(ctx, a) == nil {
			return nil
		}
	}
	for _, group := range wanted.Groups {
		a := c.wants(c.group(), "groups", group)
		if err := c.allowed(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) extra(ctx context.Context, wanted *request.User) error {
	if len(wanted.Extra) == 0 {
		return nil
	}
	if c.constrained() {
		a := c.wants(authentication, "userextras", "")
		if err := validateExtra(wanted.Extra); err != nil {
			return authz.Forbidden(a, err.Error())
		}
		if a.Subresource, a.Name = "*", "*"; isLarge(wanted.Extra) && c.allowed(ctx, a) == nil {
			return nil
		}
	}
	for _, key := range slices.Sorted(maps.Keys(wanted.Extra)) {
		for _, value := range wanted.Extra[key] {
			a := c.wants(authentication, "userextras", value)
			a.Subresource = key
			if err := c.allowed(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// isLarge reports whether an extra has many keys or values.
func isLarge(extra map[string][]string) bool {
	values := 0
	for _, v := range extra {
		values += len(v)
	}
	return max(len(extra), values) >= many
}

// validateExtra validates an extra for the constrained modes.
func validateExtra(extra map[string][]string) error {
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		values := extra[key]
		if key == "" {
			return errors.New("impersonating the empty string key in extra is not allowed")
		}
		if err := utilvalidation.IsDomainPrefixedPath(field.NewPath("extra", "key"), key).ToAggregate(); err != nil {
			return fmt.Errorf("impersonating an invalid key in extra is not allowed: %w", err)
		}
		switch {
		case key != strings.ToLower(key):
			return fmt.Errorf("impersonating a non-lowercase key in extra is not allowed: %q", key)
		case len(values) == 0:
			return errors.New("impersonating empty values in extra is not allowed")
		case slices.Contains(values, ""):
			return errors.New("impersonating the empty string value in extra is not allowed")
		}
	}
	return nil
}
