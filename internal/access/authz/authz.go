// Package authz decides whether a user may make a request, and formats the error of a denial.
//
// It defines the attributes of a request, authorizers, and their union. It does not know roles,
// authentication, or the handlers of paths.
package authz

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/status"
)

// Attributes describe the action to authorize.
type Attributes struct {
	User *request.User
	request.Info
	// Selectors is set for an action other than a request to this server, as in a review. It
	// defaults to the selectors of Info.
	Selectors *Selectors
}

// Selectors are parsed field and label selectors.
type Selectors struct {
	Fields fields.Requirements
	Labels labels.Requirements
	// FieldsErr and LabelsErr are parse errors.
	FieldsErr, LabelsErr error
}

// Select returns the selectors. They are parsed on demand: few authorizers need them.
func (a *Attributes) Select() *Selectors {
	if a.Selectors != nil {
		return a.Selectors
	}
	s := &Selectors{}
	if a.FieldSelector != "" {
		selector, err := fields.ParseSelector(a.FieldSelector)
		if s.FieldsErr = err; err == nil {
			s.Fields = selector.Requirements()
		}
	}
	if a.LabelSelector != "" {
		selector, err := labels.Parse(a.LabelSelector)
		if s.LabelsErr = err; err == nil {
			s.Labels, _ = selector.Requirements()
		}
	}
	return s
}

// Forbidden returns the 403 error for an action.
func Forbidden(a *Attributes, reason string) *status.Error {
	message := Htmlless(a.denial())
	if reason != "" {
		message += ": " + reason
	}
	resource := schema.GroupResource{Group: a.Group, Resource: a.Resource}
	return status.Forbidden(resource, a.Name, fmt.Errorf("%s", message))
}

// Require asks an authorizer, and returns the 403 error of an action that it does not allow.
func Require(ctx context.Context, authorizer Authorizer, a *Attributes) error {
	decision, reason, err := authorizer.Authorize(ctx, a)
	switch {
	case decision == Allow:
		return nil
	case err != nil && reason != "":
		reason = fmt.Sprintf("%v: %s", err, reason)
	case err != nil:
		reason = err.Error()
	}
	return Forbidden(a, reason)
}

// Htmlless escapes a message, so that browsers do not interpret names from clients as HTML.
func Htmlless(message string) string { return htmlless.Replace(message) }

var htmlless = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (a *Attributes) denial() string {
	name := ""
	if a.User != nil {
		name = a.User.Name
	}
	if !a.IsResource {
		return fmt.Sprintf("User %q cannot %s path %q", name, a.Verb, a.Path)
	}
	resource, where := a.Resource, "at the cluster scope"
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	if a.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", name, a.Verb, resource, a.Group, where)
}

// Check asks an Authorizer, and returns nil or the error of the denial. Allow counts even with an
// error.
func Check(ctx context.Context, z Authorizer, a *Attributes) error {
	switch decision, reason, err := z.Authorize(ctx, a); {
	case decision == Allow:
		return nil
	case err != nil:
		return status.Internal(err)
	default:
		return Forbidden(a, reason)
	}
}
