package core

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
)

// The default lifetime of a token is an hour. Requested lifetimes have bounds.
const (
	defaultSeconds = 60 * 60
	fewestSeconds  = 10 * 60
	mostSeconds    = 1 << 32
)

// issuedID is the audit annotation with the id of the issued token.
const issuedID = "authentication.kubernetes.io/issued-credential-id"

var tokenRequestKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")

// tokenRequests returns the kind TokenRequest. It is the body of a subresource of ServiceAccounts,
// not a resource.
func tokenRequests() *resource.Definition {
	return kind.New(resource.Definition{
		Group: authenticationv1.GroupName, Plural: "tokenrequests", Singular: "tokenrequest", Kind: "TokenRequest",
		Namespaced: true, Verbs: []string{"create"},
	}, kind.UnlistedOf[*authenticationv1.TokenRequest](&resource.Version{Name: "v1"}).WhenDecoded(func(obj map[string]any) {
		kind.SetMissing(kind.Child(obj, "spec"), "expirationSeconds", int64(defaultSeconds))
	}))
}

// A tokenCreater creates service account tokens.
type tokenCreater struct {
	issuer                         *serviceaccount.Issuer
	accounts, secrets, pods, nodes *resource.Definition
	validating, mutating           *resource.Definition
	authorizer                     authz.Authorizer
}

// subresource returns the subresource token.
func (t *tokenCreater) subresource() resource.Subresource {
	return resource.Subresource{
		Name: "token", Verbs: []string{"create"}, Kind: tokenRequestKind, Definition: tokenRequests(), Creater: t,
	}
}

// Create returns the TokenRequest with a token.
func (t *tokenCreater) Create(ctx context.Context, c *resource.Change) (map[string]any, error) {
	if name := object.Name(c.Object); name != "" && name != c.Name {
		return nil, status.Invalid(tokenRequestKind.GroupKind(), c.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "name"), name, "must match the service account name if specified"),
		})
	}
	account, err := c.Objects.Get(ctx, t.accounts, c.Namespace, c.Name)
	if err != nil {
		return nil, err
	}
	uid := object.UID(account)
	if asked := object.UID(c.Object); asked != "" && asked != uid {
		err := fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", asked, uid)
		if c.Gates.On(gate.TokenRequestServiceAccountUIDValidation) {
			return nil, status.Conflict(schema.GroupResource{Group: tokenRequestKind.Group, Resource: tokenRequestKind.Kind}, c.Name, err)
		}
		if q := request.From(ctx); q != nil {
			q.Annotate("authentication.k8s.io/token-request-uid-mismatch", err.Error())
		}
	}
	asked := kind.ValueOf[authenticationv1.TokenRequest](c.Object).Spec
	if len(asked.Audiences) == 0 {
		asked.Audiences = t.issuer.Audiences()
	}
	if errs := validateTokenRequest(&asked); len(errs) > 0 {
		return nil, status.Invalid(tokenRequestKind.GroupKind(), "", errs)
	}
	grant := serviceaccount.Grant{
		Namespace: c.Namespace, Account: serviceaccount.Reference{Name: c.Name, UID: uid},
		Audiences: asked.Audiences, Seconds: *asked.ExpirationSeconds,
	}
	if err := t.bind(ctx, c, &asked, &grant); err != nil {
		return nil, err
	}
	if most := t.issuer.MaxSeconds(); most > 0 && grant.Seconds > most {
		resource.Warn(ctx, fmt.Sprintf("requested expiration of %d seconds shortened to %d seconds", grant.Seconds, most))
		grant.Seconds = most
	}
	now := time.Now()
	token, id, err := t.issuer.Issue(ctx, grant, now)
	if err != nil {
		return nil, status.Internal(fmt.Errorf("failed to generate token: %w", err))
	}
	if q := request.From(ctx); q != nil {
		q.Annotate(issuedID, serviceaccount.CredentialID(id))
	}
	return answerTokenRequest(c, grant, token, now), nil
}

// answerTokenRequest returns the request with the granted values.
func answerTokenRequest(c *resource.Change, g serviceaccount.Grant, token string, now time.Time) map[string]any {
	out := c.Object
	for name, value := range map[string]string{
		"name": c.Name, "namespace": c.Namespace, "uid": g.Account.UID, "creationTimestamp": object.Timestamp(now),
	} {
		object.SetMetaString(out, name, value)
	}
	audiences := make([]any, len(g.Audiences))
	for i, a := range g.Audiences {
		audiences[i] = a
	}
	spec := kind.Child(out, "spec")
	spec["audiences"], spec["expirationSeconds"] = audiences, g.Seconds
	kind.SetMissing(spec, "boundObjectRef", nil)
	out["status"] = map[string]any{
		"token":               token,
		"expirationTimestamp": object.Timestamp(now.Add(time.Duration(g.Seconds) * time.Second)),
	}
	return out
}

func validateTokenRequest(s *authenticationv1.TokenRequestSpec) (errs field.ErrorList) {
	at, seconds := field.NewPath("spec"), *s.ExpirationSeconds
	if seconds < fewestSeconds {
		errs = append(errs, field.Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration less than 10 minutes"))
	}
	if seconds > mostSeconds {
		errs = append(errs, field.Invalid(at.Child("expirationSeconds"), seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	attestations := at.Child("attestations")
	if !isWebhook(s.BoundObjectRef) {
		if len(s.Attestations) > 0 {
			return field.ErrorList{field.Invalid(attestations, s.Attestations, "attestations may only be specified with a webhook bound object reference")}
		}
		return errs
	}
	if len(s.Audiences) != 1 {
		errs = append(errs, field.Invalid(at.Child("audiences"), s.Audiences, "must be length 1 when bound to a webhook config"))
	}
	return append(errs, validateAttestations(s.Attestations, attestations)...)
}

// binds are the kinds to which a token can be bound.
var binds = map[schema.GroupKind]bool{{Kind: "Pod"}: true, {Kind: "Node"}: true, {Kind: "Secret"}: true}

// bind adds the bound object to a grant.
func (t *tokenCreater) bind(ctx context.Context, c *resource.Change, asked *authenticationv1.TokenRequestSpec, g *serviceaccount.Grant) error {
	ref := asked.BoundObjectRef
	if ref == nil {
		return nil
	}
	of := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	var uid string
	if binds[of.GroupKind()] && ref.Name == "" {
		return status.BadRequest("Name parameter required.")
	}
	switch of.GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		pod, err := c.Objects.Get(ctx, t.pods, c.Namespace, ref.Name)
		if err != nil {
			return err
		}
		if kind.Text(pod, "spec", "serviceAccountName") != c.Name {
			return status.BadRequest("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", c.Name)
		}
		uid, g.Pod = object.UID(pod), referenceTo(pod)
		if g.Node, err = t.nodeOf(ctx, c, pod); err != nil {
			return err
		}
	case schema.GroupKind{Kind: "Node"}:
		node, err := c.Objects.Get(ctx, t.nodes, "", ref.Name)
		if err != nil {
			return err
		}
		uid, g.Node = object.UID(node), referenceTo(node)
	case schema.GroupKind{Kind: "Secret"}:
		secret, err := c.Objects.Get(ctx, t.secrets, c.Namespace, ref.Name)
		if err != nil {
			return err
		}
		uid, g.Secret = object.UID(secret), referenceTo(secret)
	default:
		if !isWebhook(ref) {
			return status.BadRequest("cannot bind token to object of type %s", of)
		}
		var err error
		if uid, err = t.bindWebhook(ctx, c, asked, g); err != nil {
			return err
		}
	}
	if ref.UID != "" && ref.UID != types.UID(uid) {
		return status.Conflict(schema.GroupResource{Group: of.Group, Resource: of.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return nil
}

// nodeOf returns the node of a pod, without a UID if the node does not exist.
func (t *tokenCreater) nodeOf(ctx context.Context, c *resource.Change, pod map[string]any) (*serviceaccount.Reference, error) {
	name := kind.Text(pod, "spec", "nodeName")
	if name == "" {
		return nil, nil
	}
	node, err := c.Objects.Get(ctx, t.nodes, "", name)
	switch {
	case status.Is(err, metav1.StatusReasonNotFound):
		return &serviceaccount.Reference{Name: name}, nil
	case err != nil:
		return nil, status.Internal(err)
	}
	return referenceTo(node), nil
}

func referenceTo(obj map[string]any) *serviceaccount.Reference {
	return &serviceaccount.Reference{Name: object.Name(obj), UID: object.UID(obj)}
}
