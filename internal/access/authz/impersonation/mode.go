package impersonation

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/object/request"
)

// A mode is one way in which it may be allowed to make a request as somebody else.
//
// A mode with a name is constrained: two verbs have to be allowed, one to be that user at all,
// and one to make this very request as them. The mode without a name is as old as roles:
// whoever may be that user may do all that they may.
type mode struct {
	name string
	// isFor says whether the mode is for whom is wanted, by who asks.
	isFor func(wanted, asking *request.User) bool
	// own is set where a service account asks for the node that it is on. What is allowed
	// then is allowed for every node, and depends on no extra of the account but its keys.
	own bool
}

// modes are all there are, in the order in which they are tried.
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

// verb is the one for being somebody else.
func (m *mode) verb() string {
	if !m.constrained() {
		return "impersonate"
	}
	return "impersonate:" + m.name
}

// verbOn is the one for doing something as somebody else.
func (m *mode) verbOn(verb string) string { return "impersonate-on:" + m.name + ":" + verb }

// shown is who asks, as authorizers are told.
func (m *mode) shown(asking *request.User) *request.User {
	if !m.own {
		return asking
	}
	u := *asking
	u.Extra = map[string][]string{"authentication.kubernetes.io/associated-node-keys": slices.Sorted(maps.Keys(asking.Extra))}
	return &u
}

// isBare reports whether nothing but a name is wanted.
func isBare(u *request.User) bool { return u.UID == "" && len(u.Groups) == 0 && len(u.Extra) == 0 }

// nodeOf returns the node whose user has a name, or "".
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

// isOwnNode reports whether a service account wants to be the node that it is on.
func isOwnNode(wanted, asking *request.User) bool {
	node := nodeOf(wanted.Name)
	on := asking.Extra[request.NodeName]
	return isBare(wanted) && node != "" && isServiceAccount(asking.Name) && len(on) == 1 && on[0] == node
}

// recent has the mode that was last allowed to a user.
type recent struct {
	mu sync.Mutex
	by map[string]*mode
}

// maxRecent bounds of how many users the mode is remembered.
const maxRecent = 4096

func (r *recent) mode(user string) *mode {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.by[user]
}

func (r *recent) remember(user string, m *mode) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*mode{}
	}
	if len(r.by) >= maxRecent {
		clear(r.by)
	}
	r.by[user] = m
}
