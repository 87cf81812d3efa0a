package celpolicy

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/cel-go/common/types/ref"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/registry"
)

// An Authorizer answers the authorizer calls of expressions, for the user of a request or a service
// account. It serves one request, is not safe for concurrent use, and caches its decisions.
type Authorizer struct {
	value, requested ref.Val
}

// NewAuthorizer returns the Authorizer of a request, backed by z.
func NewAuthorizer(ctx context.Context, z authz.Authorizer, a *registry.Admission) *Authorizer {
	var u user.Info
	if a.User != nil {
		u = &user.DefaultInfo{Name: a.User.Name, UID: a.User.UID, Groups: a.User.Groups, Extra: a.User.Extra}
	}
	answers := &answers{ctx: ctx, authorizer: z, known: map[string]answer{}}
	return &Authorizer{library.NewAuthorizerVal(u, answers), library.NewResourceAuthorizerVal(u, answers, requested{a})}
}

// requested is the resource of a request.
type requested struct{ *registry.Admission }

func (r requested) GetName() string                          { return RequestName(r.Admission) }
func (r requested) GetNamespace() string                     { return RequestNamespace(r.Admission) }
func (r requested) GetResource() schema.GroupVersionResource { return RequestResource(r.Admission) }
func (r requested) GetSubresource() string                   { return r.Target.Subresource }

// answers calls an authz.Authorizer and caches its decisions.
type answers struct {
	ctx        context.Context
	authorizer authz.Authorizer
	known      map[string]answer
}

type answer struct {
	decision authorizer.Decision
	reason   string
	err      error
}

// Authorize implements the interface of the library of the language. That knows no context.
func (s *answers) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	attrs := attributesOf(a)
	key := keyOf(attrs)
	known, ok := s.known[key]
	if !ok {
		decision, reason, err := s.authorizer.Authorize(s.ctx, attrs)
		known = answer{decisions[decision], reason, err}
		s.known[key] = known
	}
	return known.decision, known.reason, known.err
}

var decisions = map[authz.Decision]authorizer.Decision{
	authz.Allow: authorizer.DecisionAllow, authz.Deny: authorizer.DecisionDeny, authz.NoOpinion: authorizer.DecisionNoOpinion,
}

func attributesOf(a authorizer.Attributes) *authz.Attributes {
	attrs := &authz.Attributes{
		Info: request.Info{
			IsResource: a.IsResourceRequest(), Verb: a.GetVerb(), Path: a.GetPath(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(),
			Namespace: a.GetNamespace(), Resource: a.GetResource(), Subresource: a.GetSubresource(), Name: a.GetName(),
		},
		Selectors: &authz.Selectors{},
	}
	if u := a.GetUser(); u != nil {
		attrs.User = &request.User{Name: u.GetName(), UID: u.GetUID(), Groups: u.GetGroups(), Extra: u.GetExtra()}
	}
	attrs.Selectors.Fields, attrs.Selectors.FieldsErr = a.GetFieldSelector()
	attrs.Selectors.Labels, attrs.Selectors.LabelsErr = a.GetLabelSelector()
	return attrs
}

// keyOf returns equal keys for equal checks. A request has one user besides service accounts, so names
// identify users.
func keyOf(a *authz.Attributes) string {
	name := ""
	if a.User != nil {
		name = a.User.Name + "/" + a.User.UID
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q %v %q %q %q %q %q %q %q", name, a.IsResource, a.Verb, a.Path, a.Group, a.Namespace, a.Resource, a.Subresource, a.Name)
	fmt.Fprintf(&b, " %q %v %v %v", a.Selectors.Fields, a.Selectors.FieldsErr, a.Selectors.Labels, a.Selectors.LabelsErr)
	return b.String()
}
