package serviceaccount

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/object/request"
)

// A Reference names an object in a token.
type Reference struct {
	Name string `json:"name,omitempty"`
	UID  string `json:"uid,omitempty"`
}

// bound are the claims of a token from the TokenRequest API.
type bound struct {
	Namespace    string              `json:"namespace,omitempty"`
	Account      Reference           `json:"serviceaccount"`
	Pod          *Reference          `json:"pod,omitempty"`
	Secret       *Reference          `json:"secret,omitempty"`
	Node         *Reference          `json:"node,omitempty"`
	Validating   *Reference          `json:"validatingwebhookconfiguration,omitempty"`
	Mutating     *Reference          `json:"mutatingwebhookconfiguration,omitempty"`
	Attestations map[string][]string `json:"attestations,omitempty"`
	WarnAfter    *jwt.NumericDate    `json:"warnafter,omitempty"`
}

// legacy are the claims of a Secret's token.
type legacy struct {
	AccountName string `json:"kubernetes.io/serviceaccount/service-account.name"`
	AccountUID  string `json:"kubernetes.io/serviceaccount/service-account.uid"`
	SecretName  string `json:"kubernetes.io/serviceaccount/secret.name"`
	Namespace   string `json:"kubernetes.io/serviceaccount/namespace"`
}

// claims are all claims of a token.
type claims struct {
	jwt.Claims
	legacy
	Kubernetes bound `json:"kubernetes.io"`
}

// issuerOf returns the unverified claim iss of a token. ok is false if the token is malformed.
func issuerOf(token string) (issuer string, ok bool) {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	data, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return "", false
	}
	var said struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(data, &said); err != nil {
		return "", false
	}
	return said.Issuer, true
}

// asymmetric are the accepted signing algorithms: neither HMAC nor none.
var asymmetric = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512,
}

// maxHeader bounds the header of a token: the library parses it without a limit on nesting.
const maxHeader = 16 << 10

var errNoKey = errors.New("invalid signature, no keys found")

// read verifies the signature of a token with the key of its key ID or, without an ID, with each
// key. c is nil without an error if it is no token. fixed reports that the same token always has the
// same result with this generation of keys.
func read(ctx context.Context, k Keys, token string) (c *claims, fixed bool, err error) {
	token = strings.Join(strings.Fields(token), "")
	if strings.IndexByte(token, '.') > maxHeader {
		return nil, true, nil
	}
	parsed, err := jwt.ParseSigned(token, asymmetric)
	var other *jose.ErrUnexpectedSignatureAlgorithm
	if errors.As(err, &other) {
		parsed, err = jwt.ParseSigned(token, []jose.SignatureAlgorithm{other.Got}) // no key verifies it
	}
	if err != nil {
		return nil, true, nil
	}
	header := parsed.Headers[0]
	var failed []error
	keys, fixed := k.find(ctx, header.KeyID)
	for _, key := range keys {
		if !slices.Contains(key.algorithms, jose.SignatureAlgorithm(header.Algorithm)) {
			failed = append(failed, jose.ErrCryptoFailure)
			continue
		}
		c := &claims{}
		err := parsed.Claims(key.public, c)
		if errors.Is(err, jose.ErrUnsupportedCriticalHeader) {
			err = jose.ErrCryptoFailure // as Kubernetes reports it
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		return c, true, nil
	}
	if failed == nil {
		return nil, fixed, errNoKey
	}
	return nil, fixed, utilerrors.NewAggregate(failed)
}

// leeway is the tolerated clock skew.
const leeway = jwt.DefaultLeeway

// checkTime checks that a token is valid at a time.
func (c *claims) checkTime(now time.Time) error {
	switch early, late := now.Add(leeway), now.Add(-leeway); {
	case c.NotBefore != nil && early.Before(c.NotBefore.Time()):
		return errors.New("service account token is not valid yet")
	case c.Expiry != nil && late.After(c.Expiry.Time()):
		return errors.New("service account token has expired")
	case c.IssuedAt != nil && early.Before(c.IssuedAt.Time()):
		return errors.New("service account token is issued in the future")
	}
	return nil
}

// checkLegacy checks that the token of a Secret has all required claims.
func (c *claims) checkLegacy() error {
	for _, of := range []struct{ name, value string }{
		{"sub", c.Subject}, {"namespace", c.Namespace}, {"secretName", c.SecretName},
		{"serviceAccountName", c.AccountName}, {"serviceAccountUID", c.AccountUID},
	} {
		if of.value == "" {
			return errors.New(of.name + " claim is missing")
		}
	}
	namespace, name, err := request.SplitServiceAccount(c.Subject)
	if err != nil || namespace != c.Namespace || name != c.AccountName {
		return errors.New("sub claim is invalid")
	}
	return nil
}
