package chain

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/webhook"
	"github.com/anykind/anykind/internal/network/configfile"
)

// The types of authorizers, named as the modes of --authorization-mode.
const (
	RBAC        = "RBAC"
	Node        = "Node"
	ABAC        = "ABAC"
	Webhook     = string(apiserver.TypeWebhook)
	AlwaysAllow = "AlwaysAllow"
	AlwaysDeny  = "AlwaysDeny"
)

// Types returns all types of authorizers.
func Types() []string { return []string{RBAC, Node, ABAC, Webhook, AlwaysAllow, AlwaysDeny} }

// A Config is a validated AuthorizationConfiguration.
type Config struct {
	apiserver.AuthorizationConfiguration
	file string       // the source, or ""
	data []byte       // of the file
	path string       // of reviews, below the URLs of webhooks
	open *authz.Paths // paths that need no authorization; nil for none
}

// Load reads the file of a configuration.
func Load(file string) (*Config, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	c, err := parse(data, nil)
	if err != nil {
		return nil, err
	}
	c.file, c.data = file, data
	return c, nil
}

// parse decodes and validates a configuration. required are types that must be present.
func parse(data []byte, required []string) (*Config, error) {
	c := &Config{}
	if len(data) > 0 {
		decoded, err := configfile.Decode[*apiserver.AuthorizationConfiguration](data, "AuthorizationConfiguration")
		if err != nil {
			return nil, fmt.Errorf("failed to load AuthorizationConfiguration from file: %w", err)
		}
		c.AuthorizationConfiguration = *decoded
	}
	if errs := validation.ValidateAuthorizationConfiguration(authorizationcel.NewDefaultCompiler(), nil, &c.AuthorizationConfiguration, sets.New(Types()...), sets.New(Webhook)); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	var errs []error
	for _, a := range c.Authorizers {
		if want := strings.ToLower(string(a.Type)); string(a.Type) != Webhook && a.Name != want {
			errs = append(errs, fmt.Errorf("expected name %s for authorizer %s instead of %s", want, a.Type, a.Name))
		}
		if a.Webhook != nil && a.Webhook.ConnectionInfo.KubeConfigFile == nil {
			errs = append(errs, fmt.Errorf("authorizer %s has a connection of type %s, which only servers in a cluster can make: use type %s",
				a.Name, a.Webhook.ConnectionInfo.Type, apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile))
		}
	}
	if missing := sets.New(required...).Difference(sets.New(c.local()...)); missing.Len() > 0 {
		errs = append(errs, fmt.Errorf("missing required types: %v", sets.List(missing)))
	}
	return c, utilerrors.NewAggregate(errs)
}

// Asks reports whether the configuration has a type of authorizer.
func (c *Config) Asks(of string) bool {
	return slices.ContainsFunc(c.Authorizers, func(a apiserver.AuthorizerConfiguration) bool { return string(a.Type) == of })
}

// local returns the types of authorizers that are not webhooks.
func (c *Config) local() (types []string) {
	for _, a := range c.Authorizers {
		if string(a.Type) != Webhook {
			types = append(types, string(a.Type))
		}
	}
	return types
}

// Flags are equivalent to a configuration, as the flags --authorization-* of kube-apiserver.
type Flags struct {
	// Modes are the authorizers in order; empty is RBAC.
	Modes []string
	// PolicyFile has the policies of ABAC. It also applies with a configuration file.
	PolicyFile string
	// WebhookFile is the kubeconfig of the webhook.
	WebhookFile    string
	WebhookVersion string
	// AuthorizedTTL and UnauthorizedTTL are the TTLs of its cached answers; 0 disables caching.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// Given reports that at least one of the flags is set.
	Given bool
}

// check validates the flags.
func (f *Flags) check() error {
	var errs []error
	wrong := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	twice := false
	for i, mode := range f.Modes {
		if !slices.Contains(Types(), mode) {
			wrong("authorization-mode %q is not a valid mode", mode)
		}
		twice = twice || slices.Contains(f.Modes[:i], mode)
	}
	switch isAsked := slices.Contains(f.Modes, ABAC); {
	case isAsked && f.PolicyFile == "":
		wrong("authorization-mode ABAC's authorization policy file not passed")
	case !isAsked && f.PolicyFile != "":
		wrong("cannot specify --authorization-policy-file without mode ABAC")
	}
	isAsked := slices.Contains(f.Modes, Webhook)
	switch {
	case isAsked && f.WebhookFile == "":
		wrong("authorization-mode Webhook's authorization config file not passed")
	case isAsked:
		if err := webhook.CheckVersion(f.WebhookVersion); err != nil {
			errs = append(errs, err)
		}
	case f.WebhookFile != "":
		wrong("cannot specify --authorization-webhook-config-file without mode Webhook")
	}
	if twice {
		wrong("authorization-mode %q has mode specified more than once", f.Modes)
	}
	return utilerrors.NewAggregate(errs)
}

// flagTimeout limits a call of the webhook that flags configure.
const flagTimeout = 30 * time.Second

// Config returns the equivalent configuration.
func (f *Flags) Config() (*Config, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	modes := f.Modes
	if len(modes) == 0 {
		modes = []string{RBAC}
	}
	c := &Config{}
	for _, mode := range modes {
		a := apiserver.AuthorizerConfiguration{Type: apiserver.AuthorizerType(mode), Name: strings.ToLower(mode)}
		if mode == Webhook {
			a.Name = "default"
			a.Webhook = &apiserver.WebhookConfiguration{
				AuthorizedTTL: metav1.Duration{Duration: f.AuthorizedTTL}, CacheAuthorizedRequests: f.AuthorizedTTL != 0,
				UnauthorizedTTL: metav1.Duration{Duration: f.UnauthorizedTTL}, CacheUnauthorizedRequests: f.UnauthorizedTTL != 0,
				Timeout: metav1.Duration{Duration: flagTimeout}, FailurePolicy: apiserver.FailurePolicyNoOpinion, SubjectAccessReviewVersion: f.WebhookVersion,
				ConnectionInfo: apiserver.WebhookConnectionInfo{Type: apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: &f.WebhookFile},
			}
		}
		c.Authorizers = append(c.Authorizers, a)
	}
	return c, nil
}

// A Delegation is the API server that authorizes requests by reviews, as configured by the flags of
// extension API servers.
type Delegation struct {
	File string // kubeconfig
	// AuthorizedTTL and UnauthorizedTTL are the TTLs of its cached answers; 0 disables caching.
	AuthorizedTTL, UnauthorizedTTL time.Duration
	// AlwaysAllowPaths need no authorization.
	AlwaysAllowPaths []string
}

// delegationTimeout limits a call to that server.
const delegationTimeout = 10 * time.Second

// Config returns the configuration with that server as the only webhook.
func (d *Delegation) Config() (*Config, error) {
	open, err := authz.NewPaths(d.AlwaysAllowPaths)
	if err != nil {
		return nil, fmt.Errorf("--authorization-always-allow-paths: %w", err)
	}
	flags := Flags{Modes: []string{Webhook}, WebhookFile: d.File, WebhookVersion: "v1", AuthorizedTTL: d.AuthorizedTTL, UnauthorizedTTL: d.UnauthorizedTTL}
	c, err := flags.Config()
	if err != nil {
		return nil, err
	}
	c.Authorizers[0].Name = "kubernetes.io/webhook"
	c.Authorizers[0].Webhook.Timeout.Duration = delegationTimeout
	c.path, c.open = "/apis/authorization.k8s.io/v1/subjectaccessreviews", open
	return c, nil
}
