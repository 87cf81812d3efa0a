package envtest

import (
	"strings"

	"github.com/anykind/anykind/internal/object/request"
)

// Requests are those that have what is said here. A field that is empty says nothing; the zero value
// is all requests.
type Requests struct {
	// User is the name of who makes the request.
	User string
	// Verb is one of those of Kubernetes: get, list, watch, create, update, patch, delete,
	// deletecollection. "read" is the first three, and "write" all others.
	Verb string
	// Group is the API group, and "core" the one that has no name.
	Group string
	// Resource is plural, as in the rules of roles: "pods" are pods without their subresources, which
	// are "pods/status", or "pods/*" for all. "*/scale" is that of any resource.
	Resource string
	// Namespace is where the object is.
	Namespace string
	// Name is that of the object. A request that creates one does not have it, nor one for several.
	Name string
}

// match reports whether q is one of the requests. Only what is about objects is.
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
