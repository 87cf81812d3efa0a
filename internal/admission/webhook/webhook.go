// Package webhook calls admission webhooks: mutating ones in order, validating ones concurrently.
//
// It knows configurations, AdmissionReview, the rules for responses, and the failure policy. It
// does not know how a webhook is reached.
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
	"github.com/anykind/anykind/internal/admission/outcome"
	client "github.com/anykind/anykind/internal/network/webhook"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/schema/celpolicy"
	"github.com/anykind/anykind/internal/store/stored"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Poster sends requests to webhooks. webhook.Client implements it.
type Poster interface {
	Post(ctx context.Context, config *client.Config, call client.Call) (client.Reply, error)
}

// Options are the dependencies of the plugins.
type Options struct {
	// Cache has the configurations, whose kinds are in Kinds.
	Cache *watchcache.Cache
	Kinds *resource.Set
	// Catalog has the equivalent resources.
	Catalog    *resource.Catalog
	Namespaces *stored.Lister[corev1.Namespace]
	// Authorizer is used in match conditions.
	Authorizer authz.Authorizer
	Poster     Poster
	// Rehearsal tells webhooks that each write is a dry run: the store is a copy.
	Rehearsal bool
	Metrics   *Metrics
	// Manifests are the metrics of configurations in files.
	Manifests *manifest.Metrics
	// Outcomes remembers the calls.
	Outcomes *outcome.Log
	Log      *slog.Logger
}

// A hook is a webhook of a configuration, mutating or validating.
type hook struct {
	// id does not change with the configuration.
	id string
	// place is the index of the webhook in calling order.
	place               int
	configuration, name string

	to          client.Config
	versions    []string // of AdmissionReview, in order of preference
	ignore      bool     // the failure policy is Ignore
	sideEffects *admissionv1.SideEffectClass
	timeout     time.Duration
	reinvocable bool

	// conditions compiles the match conditions at their first use; nil without any.
	conditions func() *celpolicy.Conditions
}

// A definition has the common fields of mutating and validating webhooks.
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

// defaultTimeout is the default timeout of a webhook.
const defaultTimeout = 10 * time.Second

// entry returns a hook with its criteria.
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

// A plugin is the common part of the plugins.
type plugin struct {
	Options
	// kind is the type of the webhooks in metrics, asked the type of their match conditions, and step the
	// name in outcomes.
	kind, asked, step string
	*configurations
	folder *manifest.Folder // of manifest files; nil without them
}

// find returns the webhooks whose rules match a write.
func (p *plugin) find(ctx context.Context, a *registry.Admission) ([]match.Candidate[*hook], error) {
	d := a.Target.Definition
	if match.Virtual(d) && a.Gates.On(gate.ExcludeAdmissionWebhookVirtualResources) {
		return nil, nil
	}
	if match.Exempt(d) {
		return p.static.Find(p.Catalog, a), nil // webhooks from files can be removed on disk
	}
	if err := p.stored.RefreshOnce(ctx); err != nil {
		return nil, registry.StorageError(err)
	}
	if err := p.unreadable.Err(); err != nil {
		return nil, a.Forbidden(err)
	}
	return p.all.Find(p.Catalog, a), nil
}

// form returns the form in which a webhook receives a write, or nil if it does not match.
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
		Authorizer: celpolicy.NewAuthorizer(ctx, p.Authorizer, w.Admission), Common: &v.Common,
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

// timedOut is the error for an expired request.
func timedOut() error {
	return status.Timeout("request did not complete within requested timeout", 0)
}
