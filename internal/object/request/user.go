package request

import (
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// Users and groups with a meaning in Kubernetes.
const (
	Anonymous       = "system:anonymous"       // the user of unauthenticated requests
	Unauthenticated = "system:unauthenticated" // the group of that user
	Authenticated   = "system:authenticated"   // the group of all authenticated users
	Masters         = "system:masters"         // the group with all rights
)

// A User is the user of a request. Users are shared between requests and immutable.
type User struct {
	Name   string
	UID    string
	Groups []string
	Extra  map[string][]string
}

// Info returns the user as the API of authentication has it.
func (u *User) Info() authenticationv1.UserInfo {
	return authenticationv1.UserInfo{Username: u.Name, UID: u.UID, Groups: u.Groups, Extra: ExtraAs[authenticationv1.ExtraValue](u.Extra)}
}

// Server is the user of writes on the server's own behalf, such as those of controllers.
var Server = &User{Name: "system:apiserver", Groups: []string{Masters, Authenticated}}

// CredentialID is the extra that identifies the user's credential.
const CredentialID = "authentication.kubernetes.io/credential-id"

// ExtraAs converts an extra to another value type: each API has its own. It converts nil to nil.
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

// Node returns the node name of a node user, which may be "", and reports whether the user is a
// node.
func (u *User) Node() (name string, ok bool) {
	if u == nil {
		return "", false
	}
	name, ok = strings.CutPrefix(u.Name, "system:node:")
	return name, ok && u.In("system:nodes")
}
