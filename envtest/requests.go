package envtest

import (
	"strings"

	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/server/fault"
)

// Requests selects requests by their attributes. An empty field matches everything; the zero value
// selects all requests.
type Requests struct {
	// User is the name of the user.
	User string
	// Verb is a verb of Kubernetes: get, list, watch, create, update, patch, delete,
	// deletecollection. "read" selects the first three, and "write" all others.
	Verb string
	// Group is the API group; "core" is the group without a name.
	Group string
	// Resource is plural, as in rules of roles: "pods" excludes subresources, "pods/status" selects
	// one, "pods/*" selects all. "*/scale" selects scale of any resource.
	Resource string
	// Namespace is the namespace of the object.
	Namespace string
	// Name is the name of the object. Creates and requests for collections have none.
	Name string
}

// match reports whether the request q is selected. Requests without a resource are not.
func (r *Requests) match(q *request.Request) bool {
	info := &q.Info
	return info.IsResource &&
		(r.User == "" || q.User != nil && r.User == q.User.Name) &&
		(r.Verb == "" || fault.MatchVerb(r.Verb, info.Verb)) &&
		(r.Group == "" || r.Group == info.Group || r.Group == "core" && info.Group == "") &&
		matchResource(r.Resource, info) &&
		(r.Namespace == "" || r.Namespace == info.Namespace) &&
		(r.Name == "" || r.Name == info.Name)
}

func matchResource(want string, info *request.Info) bool {
	if want == "" {
		return true
	}
	resource, sub, below := strings.Cut(want, "/")
	return (resource == "*" || resource == info.Resource) &&
		(sub == info.Subresource || below && sub == "*" && info.Subresource != "")
}
