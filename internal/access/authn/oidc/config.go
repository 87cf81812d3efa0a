package oidc

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authenticationcel "k8s.io/apiserver/pkg/authentication/cel"

	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/object/gate"
)

// A Config is a validated AuthenticationConfiguration.
type Config struct {
	apiserver.AuthenticationConfiguration
	algorithms []string
	compiler   authenticationcel.Compiler

	file string // the source, or ""
	data []byte // of the file
}

// errAnonymousFlag reports a conflict of --anonymous-auth with the configuration file.
var errAnonymousFlag = field.Forbidden(field.NewPath("anonymous"), "--anonymous-auth flag cannot be set when anonymous field is configured in authentication configuration file")

// Load reads a configuration file. own are the issuers of the server's own tokens. anonymousFlag
// reports that --anonymous-auth is set.
func Load(file string, own []string, anonymousFlag bool, gates *gate.Set) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("failed to load authentication configuration from file %q: %w", file, err)
	}
	c, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("failed to load authentication configuration from file %q: %w", file, err)
	}
	if c.Anonymous != nil && anonymousFlag {
		return nil, errAnonymousFlag
	}
	c.file = file
	if err := c.check(own, gates).ToAggregate(); err != nil {
		return nil, fmt.Errorf("invalid authentication configuration: %w", err)
	}
	return c, nil
}

// parse decodes a configuration strictly: unknown fields are errors.
func parse(data []byte) (*Config, error) {
	if len(data) == 0 {
		return nil, errors.New("empty config data")
	}
	c, err := configfile.Decode[*apiserver.AuthenticationConfiguration](data, "AuthenticationConfiguration")
	if err != nil {
		return nil, err
	}
	return &Config{AuthenticationConfiguration: *c, algorithms: Algorithms(), data: data}, nil
}

// check validates a configuration. own are the issuers of the server's own tokens.
func (c *Config) check(own []string, gates *gate.Set) field.ErrorList {
	c.compiler = authenticationcel.NewDefaultCompiler()
	errs := validation.ValidateAuthenticationConfiguration(c.compiler, &c.AuthenticationConfiguration, own)
	if gates.On(gate.StructuredAuthenticationConfigurationEgressSelector) {
		return errs
	}
	for i, a := range c.JWT {
		if a.Issuer.EgressSelectorType == "" {
			continue
		}
		at := field.NewPath("jwt").Index(i).Child("issuer", "egressSelectorType")
		off := field.Invalid(at, a.Issuer.EgressSelectorType,
			"egress selector is not supported when StructuredAuthenticationConfigurationEgressSelector feature gate is disabled")
		place := slices.IndexFunc(errs, func(e *field.Error) bool { return e.Field == at.String() })
		if place < 0 {
			place = len(errs)
		}
		errs = slices.Insert(errs, place, off)
	}
	return errs
}

// Flags describes one issuer, as the flags --oidc-* of kube-apiserver do.
type Flags struct {
	IssuerURL, ClientID, CAFile   string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	Algorithms                    []string
	RequiredClaims                map[string]string
	// Given reports that at least one of the flags is set.
	Given bool
}

// Check validates the flags. configFile is the configuration file, or "".
func (f *Flags) Check(configFile string) error {
	switch {
	case configFile != "" && f.Given:
		return errors.New("authentication-config file and oidc-* flags are mutually exclusive")
	case configFile == "" && f.Given && (f.IssuerURL == "" || f.ClientID == ""):
		return errors.New("oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set")
	}
	return nil
}

// Config returns the equivalent configuration of the flags, or nil if none is set.
func (f *Flags) Config(own []string, gates *gate.Set) (*Config, error) {
	if f.IssuerURL == "" || f.ClientID == "" {
		return nil, nil
	}
	namePrefix := f.UsernamePrefix
	switch {
	case namePrefix == "-":
		namePrefix = ""
	case namePrefix == "" && f.UsernameClaim != "email":
		namePrefix = f.IssuerURL + "#"
	}
	a := apiserver.JWTAuthenticator{
		Issuer: apiserver.Issuer{URL: f.IssuerURL, Audiences: []string{f.ClientID}},
		ClaimMappings: apiserver.ClaimMappings{
			Username: apiserver.PrefixedClaimOrExpression{Prefix: &namePrefix, Claim: f.UsernameClaim},
		},
	}
	if f.GroupsClaim != "" {
		a.ClaimMappings.Groups = apiserver.PrefixedClaimOrExpression{Prefix: &f.GroupsPrefix, Claim: f.GroupsClaim}
	}
	if f.CAFile != "" {
		authorities, err := os.ReadFile(f.CAFile)
		if err != nil {
			return nil, err
		}
		a.Issuer.CertificateAuthority = string(authorities)
	}
	for claim, value := range f.RequiredClaims {
		a.ClaimValidationRules = append(a.ClaimValidationRules, apiserver.ClaimValidationRule{Claim: claim, RequiredValue: value})
	}
	c := &Config{AuthenticationConfiguration: apiserver.AuthenticationConfiguration{JWT: []apiserver.JWTAuthenticator{a}}, algorithms: f.Algorithms}
	if err := c.check(own, gates).ToAggregate(); err != nil {
		return nil, fmt.Errorf("invalid authentication configuration: %w", err)
	}
	return c, nil
}
