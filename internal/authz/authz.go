// Package authz decides whether a user may make a request, and words the refusal.
//
// It knows what Kubernetes allows before any role is written. It does not know how users are
// authenticated, or what handles a path.
package authz

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/status"
)

// Attributes are what somebody wants to do.
type Attributes struct {
	User *request.User
	request.Info
}

// An Authorizer says whether somebody may do something, and if not, perhaps why.
// An error says that it could not find out.
type Authorizer interface {
	Authorize(ctx context.Context, a Attributes) (allowed bool, reason string, err error)
}

// Forbidden says that somebody may not do something.
func Forbidden(a Attributes, reason string) *status.Error {
	message := htmlless.Replace(a.denial())
	if reason != "" {
		message += ": " + reason
	}
	resource := schema.GroupResource{Group: a.Group, Resource: a.Resource}
	return status.Forbidden(resource, a.Name, fmt.Errorf("%s", message))
}

// htmlless keeps what a client named from being taken for HTML.
var htmlless = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

func (a Attributes) denial() string {
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

// BootstrapPolicy is what Kubernetes allows before anyone has written a role:
// everything to system:masters, looking around to those who are known, and to
// everyone to see whether the server is well and which version it is.
type BootstrapPolicy struct{}

// Paths that may be read. A star at the end stands for anything.
var (
	publicPaths    = []string{"/livez", "/readyz", "/healthz", "/version", "/version/"}
	discoveryPaths = []string{"/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*"}
)

// Reviews of oneself that those who are known may create.
var selfReviews = []schema.GroupResource{
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"},
}

// Authorize implements Authorizer.
func (BootstrapPolicy) Authorize(_ context.Context, a Attributes) (bool, string, error) {
	known := a.User.In(request.Authenticated)
	switch {
	case a.User.In(request.Masters):
		return true, "", nil
	case a.IsResource:
		asked := schema.GroupResource{Group: a.Group, Resource: a.Resource}
		return known && a.Verb == "create" && a.Subresource == "" && slices.Contains(selfReviews, asked), "", nil
	case a.Verb != "get":
		return false, "", nil
	case known || a.User.In(request.Unauthenticated):
		return matches(publicPaths, a.Path) || known && matches(discoveryPaths, a.Path), "", nil
	default:
		return false, "", nil
	}
}

func matches(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		prefix, ok := strings.CutSuffix(p, "*")
		return p == path || ok && strings.HasPrefix(path, prefix)
	})
}
