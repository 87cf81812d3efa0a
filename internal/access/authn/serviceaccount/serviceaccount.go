// Package serviceaccount issues the tokens of service accounts, and finds the user of one.
//
// An Issuer has the keys and signs. An Authenticator verifies: the signature once, and what
// the token depends on (the account, and the Pod, Secret or Node that it is bound to) every
// time, so that a token ends with the write that deletes one of them. Discovery tells others
// how to verify tokens.
//
// The package knows claims and stored objects. It does not know HTTP, but for Discovery, or
// what an account may do.
package serviceaccount

import (
	"github.com/anykind/anykind/internal/object/request"
)

// LegacyIssuer is who the token of a Secret says issued it, whatever the name of the Issuer.
const LegacyIssuer = "kubernetes/serviceaccount"

// Labels of a Secret with a token.
const (
	// LastUsedLabel says on which day the token was last used.
	LastUsedLabel = "kubernetes.io/legacy-token-last-used"
	// InvalidSinceLabel says that the token does not count any more, and since when.
	InvalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"
)

// DateFormat is how these labels have days.
const DateFormat = "2006-01-02"

// Keys of the extra of a user, which tell of their token.
const (
	podNameKey = "authentication.kubernetes.io/pod-name"
	podUIDKey  = "authentication.kubernetes.io/pod-uid"
	nodeUIDKey = "authentication.kubernetes.io/node-uid"
)

// CredentialID is what audit calls the token with a jti claim.
func CredentialID(jti string) string {
	if jti == "" {
		return ""
	}
	return "JTI=" + jti
}

// userOf returns the user that a token is about.
func userOf(c *claims) *request.User {
	k := &c.Kubernetes
	u := &request.User{
		Name: request.ServiceAccount(k.Namespace, k.Account.Name), UID: k.Account.UID,
		Groups: append(request.ServiceAccountGroups(k.Namespace), request.Authenticated),
	}
	say := func(key, value string) {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = []string{value}
	}
	if id := CredentialID(c.ID); id != "" {
		say(request.CredentialID, id)
	}
	if k.Pod != nil && k.Pod.Name != "" && k.Pod.UID != "" {
		say(podNameKey, k.Pod.Name)
		say(podUIDKey, k.Pod.UID)
	}
	if k.Node != nil && k.Node.Name != "" {
		say(request.NodeName, k.Node.Name)
		if k.Node.UID != "" {
			say(nodeUIDKey, k.Node.UID)
		}
	}
	return u
}

// legacyUserOf returns the user that the token of a Secret is about.
func legacyUserOf(c *claims) *request.User {
	return &request.User{
		Name: request.ServiceAccount(c.Namespace, c.AccountName), UID: c.AccountUID,
		Groups: append(request.ServiceAccountGroups(c.Namespace), request.Authenticated),
	}
}
