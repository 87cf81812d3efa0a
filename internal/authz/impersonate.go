package authz

import (
	"net/http"
	"slices"
	"strings"

	"github.com/anykind/anykind/internal/request"
	"github.com/anykind/anykind/internal/status"
)

// Headers of a request that asks to be treated as somebody else's. The last one is
// the beginning of a name.
const (
	impersonateUser  = "Impersonate-User"
	impersonateUID   = "Impersonate-Uid"
	impersonateGroup = "Impersonate-Group"
	impersonateExtra = "Impersonate-Extra-"
)

const notImpersonated = "impersonation is not supported yet, not even for system:masters; use the credentials of that user"

// RefuseImpersonation returns why a request that asks to be treated as somebody
// else's is refused, and nil for any other request. It is refused to everyone: done
// in u's own name, it could do what the other may not.
func RefuseImpersonation(u *request.User, h http.Header) error {
	if i := slices.IndexFunc(h[impersonateUser], isSet); i >= 0 {
		asked := request.Info{Verb: "impersonate", IsResource: true, Resource: "users", Name: h[impersonateUser][i]}
		return Forbidden(&Attributes{User: u, Info: asked}, notImpersonated)
	}
	var asked []string
	for name, values := range h {
		uid := name == impersonateUID && slices.ContainsFunc(values, isSet)
		if uid || name == impersonateGroup || strings.HasPrefix(name, impersonateExtra) {
			asked = append(asked, name)
		}
	}
	if len(asked) == 0 {
		return nil
	}
	slices.Sort(asked)
	return status.BadRequest("requested %s without impersonating a user name", strings.Join(asked, ", "))
}

// isSet reports whether the value of a header says something. kubectl --as="" asks
// for nobody.
func isSet(value string) bool { return value != "" }
