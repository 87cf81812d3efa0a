// Package core has the built-in kinds of the group without a name, but for events, which
// share what is stored with those of another group (internal/builtin/events).
//
// It knows what one may be and what becomes of it when it is written. What controllers
// do with it later is in internal/controller.
package core

import (
	"context"
	"net/http"

	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// Others are what kinds of the group answer requests with: other kinds, a way to pods, and
// what signs the tokens of service accounts.
type Others struct {
	Pods, Nodes, EndpointSlices *resource.Definition
	Network                     http.RoundTripper
	Tokens                      *serviceaccount.Issuer
	// PodRules are those of pods and their templates.
	PodRules func() *rule.Set
	// Store returns why the store does not answer, or nil.
	Store func(context.Context) error
}

// Definitions returns the kinds of the group, but for Nodes.
func Definitions(o Others) []*resource.Definition {
	secrets := secrets()
	return []*resource.Definition{
		namespaces(), configMaps(), secrets, serviceAccounts(o, secrets), services(o), endpoints(), componentStatuses(o),
		podTemplates(o.PodRules), replicationControllers(o.PodRules),
		persistentVolumes(), persistentVolumeClaims(),
		resourceQuotas(), limitRanges(),
	}
}
