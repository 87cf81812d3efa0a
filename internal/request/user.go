package request

import "slices"

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

// In reports whether the user is in a group.
func (u *User) In(group string) bool { return u != nil && slices.Contains(u.Groups, group) }
