package serviceaccount

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// DefaultIssuer is the default issuer, the usual one of clusters.
const DefaultIssuer = "https://kubernetes.default.svc.cluster.local"

// Options configures which tokens are accepted and issued. The zero value has the defaults of
// Kubernetes, with a generated key and DefaultIssuer.
type Options struct {
	// KeyFiles have the keys that verify tokens, public or private; SigningKeyFile has the private
	// key that signs them. Without them a key is generated.
	KeyFiles       []string
	SigningKeyFile string
	// SigningEndpoint is the socket of an external signer, in place of the files. It is a path, or
	// an abstract socket that begins with "@".
	SigningEndpoint string
	// Issuers are the accepted issuers. The first one signs. Empty is DefaultIssuer.
	Issuers []string
	// Audiences are the audiences of the server; empty is the Issuers.
	Audiences []string
	// JWKSURI is the published URL of the keys; empty is a path of the server.
	JWKSURI string
	// MaxExpiration bounds the lifetime of a token; 0 is unlimited.
	MaxExpiration time.Duration
	// ExactExpiration gives injected tokens of pods the requested lifetime, without an extension.
	ExactExpiration bool
	// SkipLookup accepts the token of a Secret without a check of stored objects.
	SkipLookup bool
}

// IssuersOf returns the accepted issuers. The first signs.
func (o Options) IssuersOf() []string {
	if len(o.Issuers) == 0 {
		return []string{DefaultIssuer}
	}
	return o.Issuers
}

// AudiencesOf returns the audiences of the server.
func (o Options) AudiencesOf() []string {
	if len(o.Audiences) > 0 {
		return o.Audiences
	}
	return o.IssuersOf()
}

// Read validates the options and reads the given keys. It returns nil Keys if there are none.
func (o Options) Read() (Keys, error) {
	errs := o.checkIssuers()
	if o.JWKSURI != "" {
		if u, err := url.Parse(o.JWKSURI); err != nil {
			errs = append(errs, fmt.Errorf("service-account-jwks-uri must be a valid URL: %v", err))
		} else if u.Scheme != "https" {
			errs = append(errs, fmt.Errorf("service-account-jwks-uri requires https scheme, parsed as: %v", u))
		}
	}
	if o.MaxExpiration != 0 && (o.MaxExpiration < time.Hour || o.MaxExpiration > 1<<32*time.Second) {
		errs = append(errs, errors.New("the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"))
	}
	if o.SigningEndpoint != "" {
		errs = append(errs, o.checkEndpoint()...)
	} else if (len(o.KeyFiles) == 0) != (o.SigningKeyFile == "") {
		errs = append(errs, errors.New("--service-account-signing-key-file and --service-account-key-file should be specified together"))
	}
	if len(errs) > 0 || o.SigningKeyFile == "" {
		return nil, errors.Join(errs...)
	}
	return LoadKeys(o.KeyFiles, o.SigningKeyFile)
}

var abstractSocket = regexp.MustCompile(`^@[\w-]+(\.[\w-]+)*$`)

func (o Options) checkEndpoint() (errs []error) {
	if o.SigningKeyFile != "" || len(o.KeyFiles) > 0 {
		errs = append(errs, errors.New("can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)"))
	}
	if strings.HasPrefix(o.SigningEndpoint, "@") && !abstractSocket.MatchString(o.SigningEndpoint) {
		errs = append(errs, fmt.Errorf("invalid value %q passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid abstract socket name", o.SigningEndpoint))
	}
	return errs
}

func (o Options) checkIssuers() (errs []error) {
	for i, issuer := range o.Issuers {
		switch _, err := url.Parse(issuer); {
		case strings.Contains(issuer, ":") && err != nil:
			errs = append(errs, fmt.Errorf("service-account-issuer %q contained a ':' but was not a valid URL: %v", issuer, err))
		case issuer == "":
			errs = append(errs, errors.New("service-account-issuer should not be an empty string"))
		case slices.Contains(o.Issuers[:i], issuer):
			errs = append(errs, fmt.Errorf("service-account-issuer %q is already specified", issuer))
		}
	}
	return errs
}

// Warn logs combinations of options that conflict.
func (o Options) Warn(log *slog.Logger) {
	if o.ExactExpiration || o.MaxExpiration == 0 || o.SigningEndpoint != "" {
		return
	}
	if o.MaxExpiration < warningExpiration*time.Second {
		log.Warn(fmt.Sprintf("service-account-extend-token-expiration is true, in order to correctly trigger safe transition logic, service-account-max-token-expiration must be set longer than %d seconds (currently %s)", warningExpiration, o.MaxExpiration))
	}
	if o.MaxExpiration < extendedExpiration*time.Second {
		log.Warn(fmt.Sprintf("service-account-extend-token-expiration is true, enabling tokens valid up to %d seconds, which is longer than service-account-max-token-expiration set to %s", extendedExpiration, o.MaxExpiration))
	}
}
