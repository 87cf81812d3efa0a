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
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/object/gate"
)

const (
	// discoverAgain is the pause between attempts to discover an issuer.
	discoverAgain = 10 * time.Second
	// clientTimeout bounds a request to an issuer, including the response body.
	clientTimeout = 30 * time.Second
	// wellKnown is the path of the discovery document.
	wellKnown = "/.well-known/openid-configuration"
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
	Gates   *gate.Set
	Metrics *Metrics
	Log     *slog.Logger
}

// An issuer authenticates by the tokens of one issuer.
type issuer struct {
	authenticator apiserver.JWTAuthenticator
	options       *Options
	ctx           context.Context // of requests that several tokens wait for
	client        *http.Client
	algorithms    []jose.SignatureAlgorithm
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
		required: map[string]string{},
	}
	for _, algorithm := range algorithms {
		i.algorithms = append(i.algorithms, jose.SignatureAlgorithm(algorithm))
	}
	if len(algorithms) == 0 {
		i.algorithms = []jose.SignatureAlgorithm{jose.RS256}
	}
	for _, rule := range a.ClaimValidationRules {
		if rule.Claim != "" {
			i.required[rule.Claim] = rule.RequiredValue
		}
	}
	if claim := a.ClaimMappings.Groups.Claim; claim != "" {
		i.distributed = &resolver{issuer: i, claim: claim}
	}
	var fetches *recorder
	if o.Gates.On(gate.StructuredAuthenticationConfigurationJWKSMetrics) {
		fetches = o.Metrics.jwks(a.Issuer.URL)
	}
	i.own = i.discover(ctx, a.Issuer.URL, discoverAgain, fetches)
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
