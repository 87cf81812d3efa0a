// Package chain builds the authorizers of a configuration, in order, and reloads them when its file
// changes.
//
// It handles configurations and flags, and creates webhook authorizers. It does not know the
// decisions of an authorizer.
package chain

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	authorizationcel "k8s.io/apiserver/pkg/authorization/cel"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/access/authz/webhook"
	"github.com/anykind/anykind/internal/network/configfile"
	"github.com/anykind/anykind/internal/network/review"
	"github.com/anykind/anykind/internal/object/request"
)

// Options of a Chain.
type Options struct {
	// ByType has the authorizers that are not webhooks. AlwaysAllow and AlwaysDeny are optional.
	ByType map[string]authz.Authorizer
	// Dial makes all connections to webhooks.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Server identifies this server in metrics.
	Server string
	Log    *slog.Logger
}

// A Chain asks the authorizers of a configuration, after Privileged.
type Chain struct {
	authz.Current
	options   Options
	initial   *Config
	decisions *prometheus.CounterVec
	webhooks  *webhook.Metrics    // nil without webhooks
	config    *configfile.Metrics // nil without a file

	mu      sync.Mutex
	applied *apiserver.AuthorizationConfiguration
	clients []*review.Client // of the webhooks that are asked
}

// New returns the Chain of a configuration. It calls no webhook yet.
func New(c *Config, o Options) (*Chain, error) {
	s := &Chain{options: o, initial: c, decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "apiserver_authorization_decisions_total",
		Help: "Final decisions (allowed or denied) of authorizers, by type, name and decision.",
	}, []string{"type", "name", "decision"})}
	if len(c.local()) < len(c.Authorizers) || c.file != "" {
		s.webhooks = webhook.NewMetrics()
	}
	if c.file != "" {
		s.config = configfile.NewMetrics("authorization", o.Server)
		s.config.Begin(c.data)
	}
	return s, s.apply(c)
}

// Collectors returns the collectors to register.
func (s *Chain) Collectors() []prometheus.Collector {
	all := append(s.webhooks.Collectors(), s.decisions)
	if s.config != nil {
		all = append(all, s.config.Collectors()...)
	}
	return all
}

// Close closes idle connections.
func (s *Chain) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		c.Close()
	}
}

// Asks reports whether the present configuration has a type of authorizer.
func (s *Chain) Asks(of string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.applied.Authorizers, func(a apiserver.AuthorizerConfiguration) bool { return string(a.Type) == of })
}

// IsFile reports whether the configuration has a file to follow.
func (s *Chain) IsFile() bool { return s.initial.file != "" }

// Follow reloads the configuration file after each change until ctx ends. An invalid configuration
// is logged and counted, and the previous one stays in force.
func (s *Chain) Follow(ctx context.Context) {
	f := configfile.File{Path: s.initial.file, Of: "authorization", Data: s.initial.data, Metrics: s.config, Log: s.options.Log, Load: s.load}
	f.Follow(ctx)
}

// load applies a configuration. final reports that a retry would fail again.
func (s *Chain) load(_ context.Context, data []byte) (final bool, err error) {
	c, err := parse(data, s.initial.local())
	if err != nil {
		return true, err
	}
	if reflect.DeepEqual(&c.AuthorizationConfiguration, s.applied) {
		return true, configfile.ErrSame
	}
	for _, of := range c.local() {
		if (of == RBAC || of == Node || of == ABAC) && !s.began(of) {
			return true, fmt.Errorf("authorizer type %s is not allowed if it was not enabled at initial server startup", of)
		}
	}
	err = s.apply(c)
	return err == nil, err
}

// began reports whether the initial configuration has a type of authorizer.
func (s *Chain) began(of string) bool {
	for _, had := range s.initial.local() {
		if had == of {
			return true
		}
	}
	return false
}

// apply replaces the authorizers with those of a configuration.
func (s *Chain) apply(c *Config) error {
	all := authz.Union{{Name: authz.PrivilegedName, Authorizer: authz.Privileged{}}}
	if c.open != nil {
		all = append(all, authz.Named{Name: "kubernetes.io/always-allow-paths", Authorizer: c.open})
	}
	var clients []*review.Client
	for i := range c.Authorizers {
		a := &c.Authorizers[i]
		var one authz.Authorizer
		switch string(a.Type) {
		case AlwaysAllow:
			one = authz.AlwaysAllow{}
		case AlwaysDeny:
			one = authz.AlwaysDeny{}
		case Webhook:
			w, client, err := s.webhook(a.Name, c.path, a.Webhook)
			if err != nil {
				return err
			}
			clients, one = append(clients, client), w
		default:
			one = s.options.ByType[string(a.Type)]
		}
		all = append(all, authz.Named{Name: a.Name, Authorizer: &counted{
			Authorizer: one,
			allowed:    s.decisions.WithLabelValues(string(a.Type), a.Name, "allowed"),
			denied:     s.decisions.WithLabelValues(string(a.Type), a.Name, "denied"),
		}})
	}
	s.Set(all)
	s.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied, s.clients = &c.AuthorizationConfiguration, clients
	return nil
}

// webhook creates the authorizer of a webhook, and its client.
func (s *Chain) webhook(name, path string, c *apiserver.WebhookConfiguration) (*webhook.Webhook, *review.Client, error) {
	client, err := review.Open(*c.ConnectionInfo.KubeConfigFile, path, s.options.Dial, c.Timeout.Duration)
	if err != nil {
		return nil, nil, err
	}
	client.Observe = func(ctx context.Context, took time.Duration, err error) { s.webhooks.Called(ctx, name, took, err) }
	o := webhook.Options{
		Server: client, Version: c.SubjectAccessReviewVersion, OnError: authz.Deny, Log: s.options.Log.With("authorizer", name),
		FailedOpen: func(err error) { s.webhooks.FailedOpen(name, err) },
	}
	if c.CacheAuthorizedRequests {
		o.AuthorizedTTL = c.AuthorizedTTL.Duration
	}
	if c.CacheUnauthorizedRequests {
		o.UnauthorizedTTL = c.UnauthorizedTTL.Duration
	}
	if c.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		o.OnError = authz.NoOpinion
	}
	if len(c.MatchConditions) > 0 {
		matcher, errs := validation.ValidateAndCompileMatchConditions(authorizationcel.NewDefaultCompiler(), c.MatchConditions)
		if err := errs.ToAggregate(); err != nil {
			return nil, nil, err
		}
		matcher.AuthorizerType, matcher.AuthorizerName, matcher.Metrics = Webhook, name, s.webhooks
		o.Match = matcher
	}
	return webhook.New(o), client, nil
}

// counted counts the decisions of an authorizer.
type counted struct {
	authz.Authorizer
	allowed, denied prometheus.Counter
}

// Authorize implements authz.Authorizer.
func (c *counted) Authorize(ctx context.Context, a *authz.Attributes) (authz.Decision, string, error) {
	decision, reason, err := c.Authorizer.Authorize(ctx, a)
	switch decision {
	case authz.Allow:
		c.allowed.Inc()
	case authz.Deny:
		c.denied.Inc()
	}
	return decision, reason, err
}

// RulesFor implements authz.Lister.
func (c *counted) RulesFor(ctx context.Context, u *request.User, namespace string) ([]rbacv1.PolicyRule, error) {
	if l, ok := c.Authorizer.(authz.Lister); ok {
		return l.RulesFor(ctx, u, namespace)
	}
	return nil, nil
}
