// Package core has the built-in kinds of the core group, except events, which share their storage
// with those of events.k8s.io (internal/builtin/events).
//
// It validates and completes them. Controllers that act on them are in internal/controller.
package core

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authz"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// Dependencies are dependencies of kinds of the group: other kinds, a transport to pods, and the issuer
// of service account tokens.
type Dependencies struct {
	Pods, Nodes, EndpointSlices *resource.Definition
	Network                     http.RoundTripper
	Tokens                      *serviceaccount.Issuer
	// ValidatingWebhooks and MutatingWebhooks are the kinds of webhook configurations, to which tokens can be bound.
	ValidatingWebhooks, MutatingWebhooks *resource.Definition
	Authorizer                           authz.Authorizer
	// PodRules are the rules of pods and pod templates.
	PodRules func() *rule.Set
	// Store returns the error of a store that does not respond, or nil.
	Store func(context.Context) error
}

// Definitions returns the kinds of the group, except Nodes.
func Definitions(o Dependencies) []*resource.Definition {
	secrets := secrets()
	return []*resource.Definition{
		namespaces(), configMaps(), secrets, serviceAccounts(o, secrets), services(o), endpoints(), componentStatuses(o),
		podTemplates(o.PodRules), replicationControllers(o.PodRules),
		persistentVolumes(), persistentVolumeClaims(),
		resourceQuotas(), limitRanges(),
	}
}
