package impersonation

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/object/request"
)

// A mode is one way to authorize impersonation.
//
// A mode with a name is constrained. It takes two verbs: one to impersonate the user, and one to
// make this request as the user. The mode without a name is the original one of Kubernetes:
// permission to impersonate a user includes all rights of that user.
type mode struct {
	name string
	// isFor reports whether the mode applies to the wanted and the asking user.
	isFor func(wanted, asking *request.User) bool
	// own marks the mode in which a service account impersonates the node of its pod. Its
	// permissions cover every node and depend only on the keys of the account's extra.
	own bool
}

// modes are all modes, in order.
var modes = [...]mode{
	{name: "associated-node", isFor: isOwnNode, own: true},
	{name: "arbitrary-node", isFor: func(wanted, _ *request.User) bool { return isBare(wanted) && nodeOf(wanted.Name) != "" }},
	{name: "serviceaccount", isFor: func(wanted, _ *request.User) bool { return isBare(wanted) && isServiceAccount(wanted.Name) }},
	{name: "user-info", isFor: func(wanted, _ *request.User) bool {
		return nodeOf(wanted.Name) == "" && !isServiceAccount(wanted.Name)
	}},
	{isFor: func(_, _ *request.User) bool { return true }},
}

func (m *mode) constrained() bool { return m.name != "" }

// verb returns the verb for impersonation of the user.
func (m *mode) verb() string {
	if !m.constrained() {
		return "impersonate"
	}
	return "impersonate:" + m.name
}

// verbOn returns the verb for the action as the impersonated user.
func (m *mode) verbOn(verb string) string { return "impersonate-on:" + m.name + ":" + verb }

// shown returns the asking user as authorizers see it.
func (m *mode) shown(asking *request.User) *request.User {
	if !m.own {
		return asking
	}
	u := *asking
	u.Extra = map[string][]string{"authentication.kubernetes.io/associated-node-keys": slices.Sorted(maps.Keys(asking.Extra))}
	return &u
}

// isBare reports whether only a name is impersonated.
func isBare(u *request.User) bool { return u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0 }

// nodeOf returns the node of a user name, or "".
func nodeOf(user string) string {
	name, ok := strings.CutPrefix(user, "system:node:")
	if !ok || len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return ""
	}
	return name
}

func isServiceAccount(user string) bool {
	_, _, err := request.SplitServiceAccount(user)
	return err == nil
}

// isOwnNode reports whether a service account impersonates the node of its pod.
func isOwnNode(wanted, asking *request.User) bool {
	node := nodeOf(wanted.Name)
	on := asking.Extra[request.NodeName]
	return isBare(wanted) && node != "" && isServiceAccount(asking.Name) && len(on) == 1 && on[0] == node
}

// maxRecent bounds the users whose last mode is cached.
const maxRecent = 4096
