package envtest

import (
	"strings"

	"github.com/anykind/anykind/internal/object/request"
)

// Requests selects requests by all fields that are set. The zero value selects all requests.
type Requests struct {
	// User is the name of the user.
	User string
	// Verb is a verb of Kubernetes: get, list, watch, create, update, patch, delete, deletecollection.
	// "read" means the first three, "write" all others.
	Verb string
	// Group is the API group. "core" is the group with the empty name.
	Group string
	// Resource is plural, as in RBAC rules: "pods" are pods without their subresources, "pods/status"
	// is one subresource, "pods/*" are all. "*/scale" is the subresource of any resource.
	Resource string
	// Namespace is the namespace of the object.
	Namespace string
	// Name is the name of the object. Creates and requests for collections have none.
	Name string
}

// match reports whether q is selected. It matches only requests for resources.
func (r *Requests) match(q *request.Request) bool {
	info := &q.Info
	return info.IsResource &&
		(r.User == "" || q.User != nil && r.User == q.User.Name) &&
		matchVerb(r.Verb, info.Verb) &&
		(r.Group == "" || r.Group == info.Group || r.Group == "core" && info.Group == "") &&
		matchResource(r.Resource, info) &&
		(r.Namespace == "" || r.Namespace == info.Namespace) &&
		(r.Name == "" || r.Name == info.Name)
}

func matchVerb(want, verb string) bool {
	switch want {
	case "", verb:
		return true
	case "read":
		return verb == "get" || verb == "list" || verb == "watch"
	case "write":
		return verb != "get" && verb != "list" && verb != "watch"
	}
	return false
}

func matchResource(want string, info *request.Info) bool {
	if want == "" {
		return true
	}
	resource, sub, below := strings.Cut(want, "/")
	return (resource == "*" || resource == info.Resource) &&
		(sub == info.Subresource || below && sub == "*" && info.Subresource != "")
}
