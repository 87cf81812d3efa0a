package authz

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/request"
)

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
func (BootstrapPolicy) Authorize(_ context.Context, a *Attributes) (Decision, string, error) {
	if allows(a) {
		return Allow, "", nil
	}
	return NoOpinion, "", nil
}

func allows(a *Attributes) bool {
	known := a.User.In(request.Authenticated)
	switch {
	case a.User.In(request.Masters):
		return true
	case a.IsResource:
		asked := schema.GroupResource{Group: a.Group, Resource: a.Resource}
		return known && a.Verb == "create" && a.Subresource == "" && slices.Contains(selfReviews, asked)
	case a.Verb != "get":
		return false
	case known || a.User.In(request.Unauthenticated):
		return matches(publicPaths, a.Path) || known && matches(discoveryPaths, a.Path)
	default:
		return false
	}
}

func matches(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		prefix, ok := strings.CutSuffix(p, "*")
		return p == path || ok && strings.HasPrefix(path, prefix)
	})
}
