// Package serviceaccount issues and authenticates tokens of service accounts.
//
// An Issuer has the keys and signs. An Authenticator verifies the signature once. It checks the
// objects that the token depends on (the account, and the bound Pod, Secret or Node) at each use, so
// that a token ends with the write that deletes one of them. Discovery publishes the verification
// keys.
//
// The package handles claims and stored objects. It does not know HTTP, except for Discovery, or the
// rights of an account.
package serviceaccount

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/anykind/anykind/internal/object/request"
)

// LegacyIssuer is the issuer in tokens of Secrets. It does not depend on the name of the Issuer.
const LegacyIssuer = "kubernetes/serviceaccount"

// Labels of a Secret with a token.
const (
	// LastUsedLabel has the day of the token's last use.
	LastUsedLabel = "kubernetes.io/legacy-token-last-used"
	// InvalidSinceLabel marks an invalidated token, with the day.
	InvalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"
)

// DateFormat is the format of days in these labels.
const DateFormat = "2006-01-02"

// Keys of the user's extra, with facts about the token.
const (
	podNameKey = "authentication.kubernetes.io/pod-name"
	podUIDKey  = "authentication.kubernetes.io/pod-uid"
	nodeUIDKey = "authentication.kubernetes.io/node-uid"

	validatingKey   = "authentication.kubernetes.io/validatingwebhookconfiguration-"
	mutatingKey     = "authentication.kubernetes.io/mutatingwebhookconfiguration-"
	reviewedKey     = "attestation.authentication.kubernetes.io/" + reviewedGroups
	reviewedGroups  = authenticationv1.AttestationAdmissionReviewAPIGroups
	nameKey, uidKey = "name", "uid" // after validatingKey and mutatingKey
)

// CredentialID returns the credential ID for audit of the token with a jti claim.
func CredentialID(jti string) string {
	if jti == "" {
		return ""
	}
	return "JTI=" + jti
}

// userOf returns the user of claims.
func userOf(c *claims) *request.User {
	k := &c.Kubernetes
	u := &request.User{
		Name: request.ServiceAccount(k.Namespace, k.Account.Name), UID: k.Account.UID,
		Groups: append(request.ServiceAccountGroups(k.Namespace), request.Authenticated),
	}
	say := func(key string, values ...string) {
		if u.Extra == nil {
			u.Extra = map[string][]string{}
		}
		u.Extra[key] = values
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
	for key, ref := range map[string]*Reference{validatingKey: k.Validating, mutatingKey: k.Mutating} {
		if ref != nil && ref.Name != "" && ref.UID != "" {
			say(key+nameKey, ref.Name)
			say(key+uidKey, ref.UID)
		}
	}
	if groups := k.Attestations[reviewedGroups]; len(groups) > 0 && (k.Validating != nil || k.Mutating != nil) {
		say(reviewedKey, groups...)
	}
	return u
}

// legacyUserOf returns the user of a Secret's token.
func legacyUserOf(c *claims) *request.User {
	return &request.User{
		Name: request.ServiceAccount(c.Namespace, c.AccountName), UID: c.AccountUID,
		Groups: append(request.ServiceAccountGroups(c.Namespace), request.Authenticated),
	}
}
