package oidc

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/configfile"
)

const (
	// readyWithin limits the discovery of the issuers of a new configuration.
	readyWithin = time.Minute
	// linger is the time that replaced issuers stay for authentications in flight.
	linger = time.Minute
)

// Issuers authenticates by the tokens of all issuers of a configuration. It implements
// authn.TokenAuthenticator.
type Issuers struct {
	options Options
	ctx     context.Context
	initial *Config
	current atomic.Pointer[generation]
}

var _ authn.TokenAuthenticator = (*Issuers)(nil)

// A generation holds the issuers of one configuration.
type generation struct {
	issuers map[string]*issuer // by URL
	cancel  context.CancelFunc
}

// New returns the issuers of a configuration. Their discovery runs in the background until ctx ends.
func New(ctx context.Context, c *Config, o Options) (*Issuers, error) {
	s := &Issuers{options: o, ctx: ctx, initial: c}
	g, err := s.generation(c)
	if err != nil {
		return nil, err
	}
	s.current.Store(g)
	if c.file != "" {
		o.Metrics.config.Begin(c.data)
	}
	return s, nil
}

func (s *Issuers) generation(c *Config) (*generation, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	g := &generation{issuers: map[string]*issuer{}, cancel: cancel}
	for _, a := range c.JWT {
		i, err := newIssuer(ctx, a, c.compiler, c.algorithms, &s.options)
		if err != nil {
			cancel()
			return nil, err
		}
		g.issuers[a.Issuer.URL] = i
	}
	return g, nil
}

// AuthenticateToken implements authn.TokenAuthenticator. For a token of another issuer it only
// decodes the claim iss.
func (s *Issuers) AuthenticateToken(ctx context.Context, token string, _ []string) (*authn.TokenAnswer, bool, error) {
	issuers := s.current.Load().issuers
	if len(issuers) == 0 {
		return nil, false, nil
	}
	url, err := unverifiedIssuer(token)
	if err != nil {
		return nil, false, nil // It is not a JSON web token.
	}
	i := issuers[url]
	if i == nil {
		return nil, false, nil
	}
	begun := time.Now()
	a, err := i.authenticate(ctx, token)
	s.options.Metrics.observe(url, begun, err)
	return a, err == nil, err
}

// Follow reloads the configuration file after each change until ctx ends. An invalid configuration
// is logged and counted, and the previous one stays in force.
func (s *Issuers) Follow(ctx context.Context) {
	f := configfile.File{Path: s.initial.file, Of: "authentication", Data: s.initial.data, Metrics: s.options.Metrics.config, Log: s.options.Log, Load: s.load}
	f.Follow(ctx)
}

// load applies a configuration. final reports that a retry would fail again.
func (s *Issuers) load(ctx context.Context, data []byte) (final bool, err error) {
	c, err := parse(data)
	if err != nil {
		return true, fmt.Errorf("failed to load authentication config: %w", err)
	}
	errs := c.check(s.options.Own, s.options.Gates)
	if !reflect.DeepEqual(s.initial.Anonymous, c.Anonymous) {
		errs = append(errs, field.Forbidden(field.NewPath("anonymous"), "changed from initial configuration file"))
	}
	if err := errs.ToAggregate(); err != nil {
		return true, fmt.Errorf("failed to validate authentication config: %w", err)
	}
	next, err := s.generation(c)
	if err != nil {
		return false, fmt.Errorf("failed to update authentication config: %w", err)
	}
	if err := next.ready(ctx); err != nil {
		next.cancel()
		return false, fmt.Errorf("failed to update authentication config: %w", err)
	}
	s.retire(s.current.Swap(next))
	return true, nil
}

// ready waits for the discovery of all issuers.
func (g *generation) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	var errs []error
	for url, i := range g.issuers {
		select {
		case <-i.own.done:
		case <-ctx.Done():
			if _, err := i.own.keys(); err != nil {
				errs = append(errs, fmt.Errorf("oidc: authenticator for issuer %q is not healthy: %w", url, err))
			}
		}
	}
	return errors.Join(errs...)
}

// retire ends replaced issuers once no request can use them.
func (s *Issuers) retire(old *generation) {
	time.AfterFunc(linger, func() {
		old.cancel()
		now := s.current.Load()
		for url := range old.issuers {
			if now.issuers[url] == nil {
				s.options.Metrics.forget(url)
			}
		}
	})
}
