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

// DefaultIssuer signs tokens unless something else is said. It is the name that clusters
// mostly have.
const DefaultIssuer = "https://kubernetes.default.svc.cluster.local"

// Options say which tokens count, and which are issued. The zero value is what Kubernetes
// does if nothing is said, with a key and an issuer of our own.
type Options struct {
	// KeyFiles have the keys that verify tokens, public or private, and SigningKeyFile the
	// private key that signs them. Without them a key is made.
	KeyFiles       []string
	SigningKeyFile string
	// SigningEndpoint is the socket of a program that holds the keys and signs tokens, in place of
	// the files. It is a path, or an abstract socket that begins with "@".
	SigningEndpoint string
	// Issuers are whose tokens count. The first one signs. Empty for DefaultIssuer.
	Issuers []string
	// Audiences are those of the server; empty for the Issuers.
	Audiences []string
	// JWKSURI is where others find the keys; empty for a path of the server.
	JWKSURI string
	// MaxExpiration bounds how long a token is valid; 0 for no bound.
	MaxExpiration time.Duration
	// ExactExpiration gives tokens that are injected into pods no longer life than was
	// asked for.
	ExactExpiration bool
	// SkipLookup lets the token of a Secret count whatever is stored.
	SkipLookup bool
}

// IssuersOf returns the issuers of tokens that count. The first signs.
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

// Read checks the options, and reads the keys that were given. Without an error they are
// nil if none were.
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

// Warn logs which options do not go well together.
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
