package serviceaccount

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"github.com/anykind/anykind/internal/object/request"
)

// Seconds that mean something to Kubernetes.
const (
	// warningExpiration is how long the token of a pod is asked for that is injected into
	// it. It is given one that is valid for longer, and used to say if it uses it that long.
	warningExpiration  = 60*60 + 7
	extendedExpiration = 365 * 24 * 60 * 60
)

// An Issuer signs tokens. It is used from when it has Keys.
type Issuer struct {
	name      string
	audiences []string
	max       int64 // seconds that a token may be asked for; 0 for any number
	extends   bool
	extended  int64 // seconds that a token of a pod gets which is extended
	keys      Keys
}

// NewIssuer returns one that signs as the first of the issuers of o.
func NewIssuer(o Options) *Issuer {
	return &Issuer{name: o.IssuersOf()[0], audiences: o.AudiencesOf(), max: int64(o.MaxExpiration.Seconds()), extends: !o.ExactExpiration, extended: extendedExpiration}
}

// Use gives an Issuer its keys. It comes before anything else. A signer that limits the time of
// tokens limits what the Issuer grants.
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

// Audiences are those of the server itself.
func (i *Issuer) Audiences() []string { return i.audiences }

// MaxSeconds is how long a token may be valid that is asked for, or 0 for any time.
func (i *Issuer) MaxSeconds() int64 { return i.max }

// A Grant says what a token is to say.
type Grant struct {
	Namespace string
	Account   Reference
	Audiences []string
	Seconds   int64 // for which it is valid
	// The token is bound to nothing, to one of these, or to a Pod and the Node that it is on.
	Pod, Secret, Node *Reference
}

// Issue signs a token, as of now. id is the one of its jti claim.
func (i *Issuer) Issue(ctx context.Context, g Grant, now time.Time) (token, id string, err error) {
	if i.keys == nil {
		return "", "", errNoSigner
	}
	after := func(seconds int64) *jwt.NumericDate {
		return jwt.NewNumericDate(now.Add(time.Duration(seconds) * time.Second))
	}
	said := grantedClaims{Audience: g.Audiences, Kubernetes: bound{Namespace: g.Namespace, Account: g.Account, Pod: g.Pod, Secret: g.Secret, Node: g.Node}}
	seconds := g.Seconds
	if i.extends && g.Pod != nil && seconds == warningExpiration && i.isMine(g.Audiences) {
		said.Kubernetes.WarnAfter = after(seconds)
		seconds = i.extended
	}
	said.Claims = jwt.Claims{
		ID: uuid.NewString(), Issuer: i.name, Subject: request.ServiceAccount(g.Namespace, g.Account.Name),
		IssuedAt: after(0), NotBefore: after(0), Expiry: after(seconds),
	}
	token, err = i.sign(ctx, said)
	return token, said.ID, err
}

// grantedClaims are those of a token that was asked for.
type grantedClaims struct {
	jwt.Claims
	Audience   []string `json:"aud,omitempty"` // also of one, which jwt.Claims writes as a text
	Kubernetes bound    `json:"kubernetes.io"`
}

// sign signs claims.
func (i *Issuer) sign(ctx context.Context, claims any) (string, error) {
	data, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return i.keys.sign(ctx, data)
}

// isMine reports whether all audiences are those of the server.
func (i *Issuer) isMine(audiences []string) bool {
	return len(common(audiences, i.audiences)) == len(audiences)
}

// IssueLegacy signs the token of a Secret. It is valid until the Secret or the account goes.
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
