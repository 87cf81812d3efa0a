package serviceaccount

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/object/bounded"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/request"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// An Authenticator authenticates service accounts by their tokens.
//
// It verifies a signature once and caches the result. It checks everything else at each use of the
// token.
type Authenticator struct {
	keys      Keys
	issuers   []string
	audiences []string
	lookup    bool
	stored    stored
	use       func(ctx context.Context, namespace, name, uid, day string) error
	log       *slog.Logger
	now       func() time.Time
	metrics   *Metrics

	// good and bad cache the verdicts on valid and invalid tokens. They have no tokens.
	good, bad *bounded.Cache[tokenID, *verdict]
}

// Dependencies are the dependencies of an Authenticator.
type Dependencies struct {
	Keys  Keys
	Cache *watchcache.Cache
	// The kinds of objects that tokens are bound to.
	Accounts, Secrets, Pods, Nodes       *resource.Definition
	ValidatingWebhooks, MutatingWebhooks *resource.Definition
	// Gates are the feature gates of the server.
	Gates *gate.Set
	// Use labels a Secret with the day of its token's last use.
	Use func(ctx context.Context, namespace, name, uid, day string) error
	// Metrics counts uses; nil counts nothing.
	Metrics *Metrics
	Log     *slog.Logger
	Now     func() time.Time // time.Now if nil
}

// NewAuthenticator returns an Authenticator with options.
func NewAuthenticator(o Options, p Dependencies) *Authenticator {
	a := &Authenticator{
		keys: p.Keys, issuers: o.IssuersOf(), audiences: o.AudiencesOf(), lookup: !o.SkipLookup,
		stored: newStored(p), use: p.Use, metrics: p.Metrics, log: p.Log, now: p.Now,
		good: bounded.New[tokenID, *verdict](maxVerdicts), bad: bounded.New[tokenID, *verdict](maxVerdicts),
	}
	if a.now == nil {
		a.now = time.Now
	}
	if a.metrics == nil {
		a.metrics = NewMetrics()
	}
	return a
}

// A verdict holds the facts of a token that never change.
type verdict struct {
	err error // of the signature; nil, like claims, if the token is not one of a service account
	*claims
	generation uint64 // of the keys
	legacy     bool   // the token is from a Secret
	keys       keys   // store keys of the objects that the token depends on
	seen       seen
	answer     *authn.TokenAnswer // for the audiences of the server; nil if none of them matches
}

// AuthenticateToken implements authn.TokenAuthenticator.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string, audiences []string) (*authn.TokenAnswer, bool, error) {
	if strings.Count(token, ".") != 2 {
		return nil, false, nil
	}
	v := a.verdict(ctx, token)
	if v.claims == nil {
		return nil, false, v.err
	}
	answer, err := a.check(ctx, v, token, audiences)
	return answer, err == nil, err
}

// verdict returns the verdict on a token by the present keys.
func (a *Authenticator) verdict(ctx context.Context, token string) *verdict {
	id, generation := idOf(token), a.keys.generation()
	for _, of := range []*bounded.Cache[tokenID, *verdict]{a.good, a.bad} {
		if v, _ := of.Get(id); v != nil && v.generation == generation {
			return v
		}
	}
	v, fixed := a.verdictOn(ctx, token)
	v.generation = generation
	switch {
	case v.claims != nil:
		a.good.Add(id, v)
	case fixed:
		a.bad.Add(id, v)
	}
	return v
}

// verdictOn verifies the signature of an uncached token. fixed reports that the same keys always
// give this verdict.
func (a *Authenticator) verdictOn(ctx context.Context, token string) (v *verdict, fixed bool) {
	issuer, ok := issuerOf(token)
	if !ok || issuer != LegacyIssuer && !slices.Contains(a.issuers, issuer) {
		return &verdict{}, true
	}
	c, fixed, err := read(ctx, a.keys, token)
	if err == nil && c != nil && c.Issuer != issuer { // the two parsers disagree
		c, err = nil, fmt.Errorf("token issuer %q is invalid", c.Issuer)
	}
	if c == nil {
		return &verdict{err: err}, fixed
	}
	v = &verdict{claims: c}
	// The Issuer may have the same name as the legacy issuer.
	v.legacy = issuer == LegacyIssuer && (c.Kubernetes.Account.Name == "" || !slices.Contains(a.issuers, issuer))
	v.keys = a.stored.keysOf(v)
	user := userOf
	if v.legacy {
		user = legacyUserOf
	}
	v.answer = &authn.TokenAnswer{User: user(c), Audiences: common(a.audiencesOf(c), a.audiences)}
	return v, true
}

// audiencesOf returns the audiences of a token. A token without audiences is for the server.
func (a *Authenticator) audiencesOf(c *claims) []string {
	if len(c.Audience) == 0 {
		return a.audiences
	}
	return c.Audience
}

// check returns the user of a verified token if the token is valid now.
func (a *Authenticator) check(ctx context.Context, v *verdict, token string, audiences []string) (*authn.TokenAnswer, error) {
	if len(v.Audience) == 0 {
		annotate(ctx, "authentication.k8s.io/legacy-token", v.Subject)
		a.metrics.legacy.Inc()
	}
	answer := v.answer
	if len(audiences) > 0 {
		answer = &authn.TokenAnswer{User: answer.User, Audiences: common(a.audiencesOf(v.claims), audiences)}
	} else {
		audiences = a.audiences
	}
	if len(answer.Audiences) == 0 {
		return nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", a.audiencesOf(v.claims), audiences)
	}
	if v.legacy {
		if err := a.checkLegacy(ctx, v, token); err != nil {
			return nil, err
		}
		return answer, nil
	}
	now := a.now()
	if err := v.checkTime(now); err != nil {
		return nil, err
	}
	if err := a.stored.check(ctx, v, now.Add(-leeway)); err != nil {
		return nil, err
	}
	a.noteStale(ctx, v, now)
	return answer, nil
}

// noteStale counts the use of an extended token after its requested expiry. Such tokens exist for
// clients that read their token only once.
func (a *Authenticator) noteStale(ctx context.Context, v *verdict, now time.Time) {
	after := v.Kubernetes.WarnAfter
	switch {
	case after == nil || *after == 0:
	case now.After(after.Time()):
		annotate(ctx, "authentication.k8s.io/stale-token",
			fmt.Sprintf("subject: %s, seconds after warning threshold: %d", v.Subject, now.Unix()-after.Time().Unix()))
		a.metrics.stale.Inc()
	default:
		a.metrics.valid.Inc()
	}
}

// annotate adds an audit annotation to the request.
func annotate(ctx context.Context, key, value string) {
	if q := request.From(ctx); q != nil {
		q.Annotate(key, value)
	}
}

// common returns the intersection, in the order of the first.
func common(a, b []string) (both []string) {
	for _, s := range a {
		if slices.Contains(b, s) {
			both = append(both, s)
		}
	}
	return both
}
