// Package authz decides whether a user may make a request, and words the refusal.
//
// It knows what is asked, who may be asked about it, and how several of those become one
// answer. It does not know roles, how users are authenticated, or what handles a path.
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

// Attributes are what somebody wants to do.
type Attributes struct {
	User *request.User
	request.Info
	// Selectors are given where the request is not one to this server. Otherwise they are
	// those of Info.
	Selectors *Selectors
}

// Selectors say which objects of a collection somebody wants.
type Selectors struct {
	Fields fields.Requirements
	Labels labels.Requirements
	// FieldsErr and LabelsErr say why a selector cannot be read.
	FieldsErr, LabelsErr error
}

// Select returns the selectors. They are read when they are asked for, which few do.
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

// Forbidden says that somebody may not do something.
func Forbidden(a *Attributes, reason string) *status.Error {
	message := Htmlless(a.denial())
	if reason != "" {
		message += ": " + reason
	}
	resource := schema.GroupResource{Group: a.Group, Resource: a.Resource}
	return status.Forbidden(resource, a.Name, fmt.Errorf("%s", message))
}

// Htmlless keeps what a client named in a message from being taken for HTML.
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

// Check asks an Authorizer, and returns why it may not be done: nil if it may. An authorizer
// that allows although something failed has allowed.
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
