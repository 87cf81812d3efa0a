// Package oidc authenticates by the JSON web tokens of external issuers. An
// AuthenticationConfiguration lists the issuers, the audiences, and the mapping of claims to users.
//
// It fetches the keys of the issuers to verify tokens. It does not know how connections to them are
// made, nor bearer tokens of other types.
package oidc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/coreos/go-oidc"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/egress"
)

const (
	// discoverAgain is the pause between attempts to discover an issuer.
	discoverAgain = 10 * time.Second
	// clientTimeout bounds a request to an issuer, including the response body.
	clientTimeout = 30 * time.Second
	// wellKnown is the path of the discovery document.
	wellKnown = "/.well-known/openid-configuration"
	// maxHeader bounds the header of a token: the library parses it without a limit on nesting.
	maxHeader = 16 << 10
)

// Options are the settings that all issuers share.
type Options struct {
	// Transport returns the transport for requests to an issuer. The TLS configuration has the CAs
	// of the issuer; nil roots are those of the system. It connects by the Dial, unless that is nil.
	Transport func(*tls.Config, egress.Dial) http.RoundTripper
	// Egress returns the Dial of an egress selection, nil if that is not configured. The field is
	// nil without an egress configuration.
	Egress func(name string) egress.Dial
	// Own are the issuers of the server's own tokens. No external issuer may have their names.
	Own     []string
	Metrics *Metrics
	Log     *slog.Logger
}

// An issuer authenticates by the tokens of one issuer.
type issuer struct {
	authenticator apiserver.JWTAuthenticator
	options       *Options
	ctx           context.Context // of requests that several tokens wait for
	client        *http.Client
	config        *oidc.Config // for verifying
	audiences     []string
	mapper        authenticationcel.CELMapper
	required      map[string]string // by name, from flags
	distributed   *resolver         // nil without a distributed claim
	own           *discovered       // the issuer itself
}

// newIssuer returns an issuer. Its discovery runs until ctx ends.
func newIssuer(ctx context.Context, a apiserver.JWTAuthenticator, compiler authenticationcel.Compiler, algorithms []string, o *Options) (*issuer, error) {
	mapper, errs := validation.CompileAndValidateJWTAuthenticator(compiler, a, o.Own)
	if err := errs.ToAggregate(); err != nil {
		return nil, err
	}
	for _, algorithm := range algorithms {
		if !slices.Contains(Algorithms(), algorithm) {
			return nil, fmt.Errorf("oidc: unsupported signing alg: %q", algorithm)
		}
	}
	client, err := newClient(a.Issuer, o)
	if err != nil {
		return nil, err
	}
	i := &issuer{
		authenticator: a, options: o, ctx: ctx, client: client, mapper: mapper, audiences: a.Issuer.Audiences,
		// The library checks a single audience; verify checks several.
		config:   &oidc.Config{SupportedSigningAlgs: algorithms, SkipClientIDCheck: len(a.Issuer.Audiences) > 1},
		required: map[string]string{},
	}
	if len(a.Issuer.Audiences) == 1 {
		i.config.ClientID = a.Issuer.Audiences[0]
	}
	for _, rule := range a.ClaimValidationRules {
		if rule.Claim != "" {
			i.required[rule.Claim] = rule.RequiredValue
		}
	}
	if claim := a.ClaimMappings.Groups.Claim; claim != "" {
		i.distributed = &resolver{issuer: i, claim: claim}
	}
	i.own = i.discover(ctx, a.Issuer.URL, discoverAgain, o.Metrics.jwks(a.Issuer.URL))
	return i, nil
}

// newClient returns the client for requests to an issuer.
func newClient(i apiserver.Issuer, o *Options) (*http.Client, error) {
	var through egress.Dial
	if name := string(i.EgressSelectorType); name != "" {
		if o.Egress == nil {
			return nil, fmt.Errorf("oidc: egress lookup required with egress selector type %q", name)
		}
		if through = o.Egress(name); through == nil {
			return nil, fmt.Errorf("oidc: egress lookup for %q is not configured", name)
		}
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if i.CertificateAuthority != "" {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM([]byte(i.CertificateAuthority)) {
			return nil, fmt.Errorf("oidc: the certificateAuthority of issuer %q has no certificate", i.URL)
		}
	}
	transport := http.RoundTripper(&bounded{o.Transport(config, through)})
	if i.DiscoveryURL != "" {
		to, err := url.Parse(i.DiscoveryURL)
		if err != nil {
			return nil, fmt.Errorf("oidc: invalid discovery URL: %w", err)
		}
		transport = &elsewhere{transport, strings.TrimSuffix(i.URL, "/") + wellKnown, to}
	}
	return &http.Client{Transport: transport, Timeout: clientTimeout}, nil
}

// Algorithms are the accepted signing algorithms: neither HMAC nor none.
func Algorithms() []string {
	return []string{oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.RS256, oidc.RS384, oidc.RS512}
}

// authenticate returns the user of a token. The token has named this issuer.
func (i *issuer) authenticate(ctx context.Context, token string) (*authn.TokenAnswer, error) {
	keys, err := i.own.keys()
	if err != nil {
		return nil, fmt.Errorf("oidc: authenticator not initialized")
	}
	c, err := i.verify(ctx, i.authenticator.Issuer.URL, keys, token)
	if err != nil {
		return nil, fmt.Errorf("oidc: verify token: %v", err)
	}
	if i.distributed != nil {
		if err := i.distributed.expand(ctx, c); err != nil {
			return nil, fmt.Errorf("oidc: could not expand distributed claims: %v", err)
		}
	}
	user, err := i.userOf(ctx, c)
	if err != nil {
		return nil, err
	}
	return &authn.TokenAnswer{User: user}, nil
}

// verify returns the claims of a token after it has checked the signature, the expiry and the
// audience.
func (i *issuer) verify(ctx context.Context, url string, keys oidc.KeySet, token string) (claims, error) {
	if strings.IndexByte(token, '.') > maxHeader {
		return nil, fmt.Errorf("oidc: malformed jwt: its header is longer than %d bytes", maxHeader)
	}
	verified, err := oidc.NewVerifier(url, keys, i.config).Verify(ctx, token)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(verified.Audience, func(a string) bool { return slices.Contains(i.audiences, a) }) {
		return nil, fmt.Errorf("oidc: expected audience in %q got %q", slices.Sorted(slices.Values(i.audiences)), verified.Audience)
	}
	var c claims
	if err := verified.Claims(&c); err != nil {
		return nil, fmt.Errorf("oidc: parse claims: %v", err)
	}
	return c, nil
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
	if of.Issuer == "accounts.google.com" { // Google omits the scheme
		return "https://accounts.google.com", nil
	}
	return of.Issuer, nil
}
