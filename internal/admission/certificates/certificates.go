// Package certificates implements the admission plugins for certificates.
//
// Approving, signing and attesting need a permission for the signer. Client certificates for the
// group system:masters cannot be requested. The package calls an authorizer; it does not know rules
// or roles.
package certificates

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/registry"
)

var (
	requests = certificatesv1.Resource("certificatesigningrequests")
	bundles  = certificatesv1.Resource("clustertrustbundles")
)

// mayFor reports whether the user has a permission for a signer, or for all signers of its domain.
// The server itself has all permissions.
func mayFor(ctx context.Context, by authz.Authorizer, a *registry.Admission, verb, signer string) bool {
	if a.User == nil {
		return true
	}
	domain, _, _ := strings.Cut(signer, "/")
	return slices.ContainsFunc([]string{signer, domain + "/*"}, func(name string) bool {
		decision, _, err := by.Authorize(ctx, &authz.Attributes{User: a.User, Info: request.Info{
			IsResource: true, Verb: verb, Group: certificatesv1.GroupName, Version: "*", Resource: "signers", Name: name,
		}})
		return decision == authz.Allow && err == nil
	})
}

// Approval checks that the user may approve or deny requests for the signer.
type Approval struct{ Authorizer authz.Authorizer }

// Validate implements registry.Validator.
func (p *Approval) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(requests, "approval", registry.Update) {
		return nil
	}
	old, err := a.Old(ctx) // a user that can change the signer could approve for any signer
	if err != nil {
		return err
	}
	if signer := signerOf(old); !mayFor(ctx, p.Authorizer, a, "approve", signer) {
		return a.Forbidden(fmt.Errorf("user not permitted to approve requests with signerName %q", signer))
	}
	return nil
}

// Signing checks that the user may sign for the signer before the status gets a certificate or
// conditions.
type Signing struct{ Authorizer authz.Authorizer }

// Validate implements registry.Validator.
func (p *Signing) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(requests, "status", registry.Update) {
		return nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	if kind.Text(a.Object, "status", "certificate") == kind.Text(old, "status", "certificate") &&
		object.Equal(kind.List(a.Object, "status", "conditions"), kind.List(old, "status", "conditions")) {
		return nil
	}
	if signer := signerOf(old); !mayFor(ctx, p.Authorizer, a, "sign", signer) {
		return a.Forbidden(fmt.Errorf("user not permitted to sign requests with signerName %q", signer))
	}
	return nil
}

// Attest checks that the user may attest for the signer of a ClusterTrustBundle.
type Attest struct{ Authorizer authz.Authorizer }

// Validate implements registry.Validator.
func (p *Attest) Validate(ctx context.Context, a *registry.Admission) error {
	if !a.Is(bundles, "", registry.Create, registry.Update) {
		return nil
	}
	signer := signerOf(a.Object)
	if signer == "" {
		return nil
	}
	old, err := a.Old(ctx)
	if err != nil {
		return err
	}
	if a.Operation == registry.Update && sameButForGarbageCollection(a.Object, old) {
		return nil
	}
	if !mayFor(ctx, p.Authorizer, a, "attest", signer) {
		return a.Forbidden(fmt.Errorf("user not permitted to attest for signerName %q", signer))
	}
	return nil
}

// sameButForGarbageCollection reports whether two objects differ only in fields that the garbage
// collector and storage migrations write.
func sameButForGarbageCollection(obj, old object.Tree) bool {
	strip := func(t object.Tree) object.Tree {
		t = object.CloneTree(t)
		for _, field := range []string{"ownerReferences", "finalizers", "selfLink", "managedFields", "resourceVersion"} {
			delete(object.Metadata(t), field)
		}
		return t
	}
	return object.Equal(strip(obj), strip(old))
}

func signerOf(obj object.Tree) string { return kind.Text(obj, "spec", "signerName") }

// SubjectRestriction rejects requests for a client certificate of the group system:masters.
type SubjectRestriction struct{}

// Validate implements registry.Validator.
func (SubjectRestriction) Validate(_ context.Context, a *registry.Admission) error {
	if !a.Is(requests, "", registry.Create) || signerOf(a.Object) != certificatesv1.KubeAPIServerClientSignerName {
		return nil
	}
	text, err := base64.StdEncoding.DecodeString(kind.Text(a.Object, "spec", "request"))
	if err != nil {
		return a.Forbidden(fmt.Errorf("failed to parse CSR: %v", err))
	}
	asked, err := pki.ParseRequest(text)
	if err != nil {
		return a.Forbidden(fmt.Errorf("failed to parse CSR: %v", err))
	}
	if slices.Contains(asked.Subject.Organization, request.Masters) {
		return a.Forbidden(fmt.Errorf("use of %s signer with system:masters group is not allowed", certificatesv1.KubeAPIServerClientSignerName))
	}
	return nil
}
