package request

import (
	"slices"
	"strings"
)

// Names that mean something to Kubernetes.
const (
	Anonymous       = "system:anonymous"       // the user who did not say who they are
	Unauthenticated = "system:unauthenticated" // the group of that user
	Authenticated   = "system:authenticated"   // the group of all other users
	Masters         = "system:masters"         // the group that may do everything
)

// A User is who is asking. Users are shared between requests and not changed.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Server is the user as whom the server writes what nobody asks for, such as what a controller does.
var Server = &User{Name: "system:apiserver", Groups: []string{Masters, Authenticated}}

// CredentialID is the extra of a user that says by which credential they are known.
const CredentialID = "authentication.kubernetes.io/credential-id"

// ExtraAs returns an extra with another type of values, of which each API has its own. That of
// nothing is nil.
func ExtraAs[To, From ~[]string](extra map[string]From) map[string]To {
	if len(extra) == 0 {
		return nil
	}
	out := make(map[string]To, len(extra))
	for key, values := range extra {
		out[key] = To(values)
	}
	return out
}

// In reports whether the user is in a group.
func (u *User) In(group string) bool { return u != nil && slices.Contains(u.Groups, group) }

// Node returns the name of the node that the user is, which may be "", and whether it is one.
func (u *User) Node() (name string, ok bool) {
	if u == nil {
		return "", false
	}
	name, ok = strings.CutPrefix(u.Name, "system:node:")
	return name, ok && u.In("system:nodes")
}
