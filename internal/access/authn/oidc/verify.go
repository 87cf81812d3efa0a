package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
)

const (
	// maxHeader bounds the header of a token: the library parses it without a limit on nesting.
	maxHeader = 16 << 10
	// leeway is the tolerated clock skew of the claim nbf.
	leeway = time.Minute

	google         = "https://accounts.google.com"
	googleNoScheme = "accounts.google.com" // in tokens of Google
)

// Algorithms are the accepted signing algorithms: neither HMAC nor none.
func Algorithms() []string {
	return []string{
		string(jose.ES256), string(jose.ES384), string(jose.ES512), string(jose.PS256), string(jose.PS384), string(jose.PS512),
		string(jose.RS256), string(jose.RS384), string(jose.RS512),
	}
}

// idToken has the claims that verify checks. Its name is part of kube-apiserver's messages. Claims that are
// not checked have types too: a token whose claims have other types is rejected.
type idToken struct {
	Issuer    string                 `json:"iss"`
	Subject   string                 `json:"sub"`
	Audience  audience               `json:"aud"`
	Expiry    seconds                `json:"exp"`
	IssuedAt  seconds                `json:"iat"`
	NotBefore *seconds               `json:"nbf"`
	Nonce     string                 `json:"nonce"`
	AtHash    string                 `json:"at_hash"`
	Names     map[string]string      `json:"_claim_names"`
	Sources   map[string]claimSource `json:"_claim_sources"`
}

// verify returns the claims of a token after it has checked the signature, the issuer, the audience and the
// times. The errors are those of kube-apiserver.
func (i *issuer) verify(ctx context.Context, url string, keys *keySet, token string) (claims, error) {
	signed, err := i.parse(token)
	if err != nil {
		return nil, err
	}
	payload, err := keys.verify(ctx, signed)
	if err != nil {
		return nil, fmt.Errorf("failed to verify signature: %v", err)
	}
	var t idToken
	if err := json.Unmarshal(payload, &t); err != nil {
		return nil, fmt.Errorf("oidc: failed to unmarshal claims: %v", err)
	}
	for _, source := range t.Names {
		if source == "" {
			return nil, errors.New("oidc: failed to obtain source from claim name")
		}
		if _, ok := t.Sources[source]; !ok {
			return nil, errors.New("oidc: source does not exist")
		}
	}
	if t.Issuer != url && (url != google || t.Issuer != googleNoScheme) {
		return nil, fmt.Errorf("oidc: id token issued by a different provider, expected %q got %q", url, t.Issuer)
	}
	if err := i.checkAudience(t.Audience); err != nil {
		return nil, err
	}
	if err := t.checkTimes(time.Now()); err != nil {
		return nil, err
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, fmt.Errorf("oidc: parse claims: %v", err)
	}
	return c, nil
}

// parse returns a token with one signature by an accepted algorithm. It does not verify the signature.
func (i *issuer) parse(token string) (*jose.JSONWebSignature, error) {
	if strings.IndexByte(token, '.') > maxHeader {
		return nil, fmt.Errorf("oidc: malformed jwt: its header is longer than %d bytes", maxHeader)
	}
	signed, err := jose.ParseSigned(token, i.algorithms)
	var unexpected *jose.ErrUnexpectedSignatureAlgorithm
	switch {
	case errors.As(err, &unexpected):
		return nil, fmt.Errorf("oidc: id token signed with unsupported algorithm, expected %q got %q", i.algorithms, unexpected.Got)
	case err != nil:
		return nil, fmt.Errorf("oidc: malformed jwt: %v", err)
	case len(signed.Signatures) != 1:
		return nil, fmt.Errorf("oidc: malformed jwt: %d signatures", len(signed.Signatures))
	}
	return signed, nil
}

func (i *issuer) checkAudience(got audience) error {
	switch {
	case slices.ContainsFunc(got, func(a string) bool { return slices.Contains(i.audiences, a) }):
		return nil
	case len(i.audiences) == 1:
		return fmt.Errorf("oidc: expected audience %q got %q", i.audiences[0], got)
	default:
		return fmt.Errorf("oidc: expected audience in %q got %q", slices.Sorted(slices.Values(i.audiences)), got)
	}
}

func (t *idToken) checkTimes(now time.Time) error {
	if expiry := time.Time(t.Expiry); expiry.Before(now) {
		return fmt.Errorf("oidc: token is expired (Token Expiry: %v)", expiry)
	}
	if t.NotBefore != nil && now.Add(leeway).Before(time.Time(*t.NotBefore)) {
		return fmt.Errorf("oidc: current time %v before the nbf (not before) time: %v", now, time.Time(*t.NotBefore))
	}
	return nil
}

// audience is a string or a list of strings in JSON.
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(data []byte) error {
	var one string
	if err := json.Unmarshal(data, &one); err == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(a))
}

// seconds is a time in JSON: seconds since 1970, as a number or its text. A fraction is dropped.
type seconds time.Time

// UnmarshalJSON implements json.Unmarshaler.
func (s *seconds) UnmarshalJSON(data []byte) error {
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	unix, err := n.Int64()
	if err != nil {
		fraction, err := n.Float64()
		if err != nil {
			return err
		}
		unix = int64(fraction)
	}
	*s = seconds(time.Unix(unix, 0))
	return nil
}

// unverifiedIssuer returns the claim iss of a token before any verification.
func unverifiedIssuer(token string) (string, error) {
	if strings.HasPrefix(strings.TrimSpace(token), "{") {
		return "", fmt.Errorf("token is not compact JWT")
	}
	if strings.Count(token, ".") != 2 {
		return "", fmt.Errorf("malformed token")
	}
	_, rest, _ := strings.Cut(token, ".")
	encoded, _, _ := strings.Cut(rest, ".")
	payload, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("error decoding token: %v", err)
	}
	var of struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &of); err != nil {
		return "", fmt.Errorf("while unmarshaling token: %v", err)
	}
	if of.Issuer == googleNoScheme {
		return google, nil
	}
	return of.Issuer, nil
}
