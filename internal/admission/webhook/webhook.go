// Package webhook asks admission webhooks about writes: mutating ones one after the other,
// validating ones all at once.
//
// It knows configurations, AdmissionReview, what an answer may say, and what becomes of a write
// when there is none. It does not know how a webhook is reached.
package webhook

import (
	"context"
	"log/slog"
	"sync"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/admission/manifest"
	"github.com/anykind/anykind/internal/admission/match"
	client "github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Poster posts to webhooks. It is what the plugins need of a webhook.Client.
type Poster interface {
	Post(ctx context.Context, config *client.Config, call client.Call) (client.Reply, error)
}

// Options are what the plugins need.
type Options struct {
	// Cache has the configurations, which are among Kinds.
	Cache *watchcache.Cache
	Kinds *resource.Set
	// Catalog says which resources are equivalent.
	Catalog    *resource.Catalog
	Namespaces *stored.Lister[corev1.Namespace]
	// Authorizer answers match conditions.
	Authorizer authz.Authorizer
	Poster     Poster
	Metrics    *Metrics
	// Manifests are the metrics of configurations that are files.
	Manifests *manifest.Metrics
	Log       *slog.Logger
}

// A hook is a webhook of a configuration, mutating or validating.
type hook struct {
	// id is the same after a change of the configuration.
	id string
	// place is how many webhooks come before it.
	place               int
	configuration, name string

	to          client.Config
	versions    []string // of AdmissionReview, the preferred one first
	ignore      bool     // failures
	sideEffects *admissionv1.SideEffectClass
	timeout     time.Duration
	reinvocable bool

	// conditions compiles those that there are when they are first needed; nil for none.
	conditions func() *celpolicy.Conditions
}

// A definition is what mutating and validating webhooks have in common.
type definition struct {
	name          string
	client        *admissionv1.WebhookClientConfig
	rules         []admissionv1.RuleWithOperations
	failure       *admissionv1.FailurePolicyType
	match         *admissionv1.MatchPolicyType
	namespaces    *metav1.LabelSelector
	objects       *metav1.LabelSelector
	sideEffects   *admissionv1.SideEffectClass
	timeout       *int32
	versions      []string
	reinvocation  *admissionv1.ReinvocationPolicyType
	conditions    []admissionv1.MatchCondition
	configuration string
}

// defaultTimeout is that of a webhook that says none.
const defaultTimeout = 10 * time.Second

// entry makes a hook with its criteria.
func (d *definition) entry(id string, credentials func(client.Config) *client.Credentials) match.Entry[*hook] {
	h := &hook{
		id: id, configuration: d.configuration, name: d.name, versions: d.versions, sideEffects: d.sideEffects, timeout: defaultTimeout,
		ignore:      d.failure != nil && *d.failure == admissionv1.Ignore,
		reinvocable: d.reinvocation != nil && *d.reinvocation == admissionv1.IfNeededReinvocationPolicy,
	}
	if d.timeout != nil {
		h.timeout = time.Duration(*d.timeout) * time.Second
	}
	h.to.CABundle = d.client.CABundle
	if d.client.URL != nil {
		h.to.URL = *d.client.URL
	}
	if s := d.client.Service; s != nil {
		h.to.Service = client.Service{Namespace: s.Namespace, Name: s.Name}
		if s.Port != nil {
			h.to.Service.Port = *s.Port
		}
		if s.Path != nil {
			h.to.Service.Path = *s.Path
		}
	}
	h.to.Credentials = credentials(h.to)
	if len(d.conditions) > 0 {
		h.conditions = sync.OnceValue(func() *celpolicy.Conditions {
			return celpolicy.Plain().Conditions(d.conditions, false, d.failure)
		})
	}
	return match.Entry[*hook]{Criteria: match.ByRules(d.rules, d.match, d.namespaces, d.objects), Of: h}
}

// A plugin is what the plugins have in common.
type plugin struct {
	Options
	// kind is the type of the webhooks in metrics, and asked that of their match conditions.
	kind, asked string
	*configurations
	folder *manifest.Folder // of files, nil for none
}

// find returns the webhooks whose rules match a write.
func (p *plugin) find(ctx context.Context, a *registry.Admission) ([]match.Candidate[*hook], error) {
	d := a.Target.Definition
	if match.Virtual(d) {
		return nil, nil
	}
	if match.Exempt(d) {
		return p.static.Find(p.Catalog, a), nil // those of files cannot be locked out
	}
	if err := p.stored.RefreshOnce(ctx); err != nil {
		return nil, registry.StorageError(err)
	}
	return p.all.Find(p.Catalog, a), nil
}

// form returns the form in which a webhook is asked about a write, or nil if it is not.
func (p *plugin) form(ctx context.Context, c *match.Candidate[*hook], w *match.Write) (*match.Form, error) {
	f, err := c.Match(ctx, w)
	if f == nil || err != nil {
		return nil, err
	}
	h := c.Of
	if h.conditions == nil {
		return f, nil
	}
	v, err := w.View(ctx, f)
	if err != nil {
		return nil, status.Internal(err)
	}
	begun := time.Now()
	matches, broken, err := h.conditions().Match(ctx, celpolicy.About{
		Admission: w.Admission, Kind: f.Kind, Resource: f.Resource, Object: v.Object, Old: v.Old,
		Authorizer: celpolicy.NewAuthorizer(ctx, p.Authorizer, w.Admission),
	})
	p.Metrics.condition(h, p.asked, w.Operation, time.Since(begun), matches, broken, err)
	switch {
	case err != nil:
		p.Log.Warn("match conditions cannot be evaluated, so the request fails", "webhook", h.name, "error", err)
		return nil, status.Forbidden(w.Target.Definition.GroupResource(), w.Target.Name, err)
	case !matches:
		return nil, nil
	}
	return f, nil
}

// timedOut says that the request has no time left.
func timedOut() error {
	return status.Timeout("request did not complete within requested timeout", 0)
}
