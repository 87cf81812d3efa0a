package serviceaccount

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/internal/object/request"
)

// Lifetimes in seconds with a special meaning in Kubernetes.
const (
	// warningExpiration is the lifetime that kubelets request for injected tokens of pods. The
	// server extends such a token, and reports its use after the requested lifetime.
	warningExpiration  = 60*60 + 7
	extendedExpiration = 365 * 24 * 60 * 60
)

// An Issuer signs tokens, once it has Keys.
type Issuer struct {
	name      string
	audiences []string
	max       int64 // maximum lifetime in seconds; 0 is unlimited
	extends   bool
	extended  int64 // lifetime of an extended token in seconds
	keys      Keys
}

// NewIssuer returns an Issuer that signs as the first issuer of o.
func NewIssuer(o Options) *Issuer {
	return &Issuer{name: o.IssuersOf()[0], audiences: o.AudiencesOf(), max: int64(o.MaxExpiration.Seconds()), extends: !o.ExactExpiration, extended: extendedExpiration}
}

// Use sets the keys of an Issuer, before any other call. The limit of an external signer also limits
// the Issuer.
func (i *Issuer) Use(k Keys) {
	i.keys = k
	if k == nil || k.maxExpiration() == 0 {
		return
	}
	most := int64(k.maxExpiration().Seconds())
	i.extended = min(i.extended, most)
	if i.max == 0 {
		i.max = most
	}
}

var errNoSigner = errors.New("no key to sign tokens")

// Audiences returns the audiences of the server.
func (i *Issuer) Audiences() []string { return i.audiences }

// MaxSeconds returns the maximum lifetime of a requested token; 0 is unlimited.
func (i *Issuer) MaxSeconds() int64 { return i.max }

// A Grant describes a token to issue.
type Grant struct {
	Namespace string
	Account   Reference
	Audiences []string
	Seconds   int64 // lifetime
	// The token is bound to no object, to one of these, or to a Pod and its Node. Validating and Mutating are webhook
	// configurations.
	Pod, Secret, Node, Validating, Mutating *Reference
	// Attestations are claims about the use of a token for a webhook.
	Attestations map[string][]string
}

// Issue signs a token issued at now. id is the claim jti.
func (i *Issuer) Issue(ctx context.Context, g Grant, now time.Time) (token, id string, err error) {
	if i.keys == nil {
		return "", "", errNoSigner
	}
	after := func(seconds int64) *jwt.NumericDate {
		return jwt.NewNumericDate(now.Add(time.Duration(seconds) * time.Second))
	}
	claims := grantedClaims{Audience: g.Audiences, Kubernetes: bound{
		Namespace: g.Namespace, Account: g.Account, Pod: g.Pod, Secret: g.Secret, Node: g.Node,
		Validating: g.Validating, Mutating: g.Mutating, Attestations: g.Attestations,
	}}
	seconds := g.Seconds
	if i.extends && g.Pod != nil && seconds == warningExpiration && i.isMine(g.Audiences) {
		claims.Kubernetes.WarnAfter = after(seconds)
		seconds = i.extended
	}
	claims.Claims = jwt.Claims{
		ID: string(uuid.NewUUID()), Issuer: i.name, Subject: request.ServiceAccount(g.Namespace, g.Account.Name),
		IssuedAt: after(0), NotBefore: after(0), Expiry: after(seconds),
	}
	token, err = i.sign(ctx, claims)
	return token, claims.ID, err
}

// grantedClaims are the claims of a requested token.
type grantedClaims struct {
	jwt.Claims
	Audience   []string `json:"aud,omitempty"` // a list even for one audience, unlike jwt.Claims
	Kubernetes bound    `json:"kubernetes.io"`
}

func (i *Issuer) sign(ctx context.Context, claims any) (string, error) {
	data, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return i.keys.sign(ctx, data)
}

// isMine reports whether all audiences are audiences of the server.
func (i *Issuer) isMine(audiences []string) bool {
	return len(common(audiences, i.audiences)) == len(audiences)
}

// IssueLegacy signs the token of a Secret. It is valid until the Secret or the account is deleted.
func (i *Issuer) IssueLegacy(ctx context.Context, namespace string, account Reference, secret string) (string, error) {
	if i.keys == nil {
		return "", errNoSigner
	}
	return i.sign(ctx, struct {
		jwt.Claims
		legacy
	}{
		jwt.Claims{Issuer: LegacyIssuer, Subject: request.ServiceAccount(namespace, account.Name)},
		legacy{AccountName: account.Name, AccountUID: account.UID, SecretName: secret, Namespace: namespace},
	})
}
