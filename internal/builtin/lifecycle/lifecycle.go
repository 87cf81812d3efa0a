// Package lifecycle has the built-in kinds of lifecycle.k8s.io: requests to evict pods, and evictions.
//
// It validates them. Controllers turn requests into evictions, and responders carry these out.
package lifecycle

import (
	lifecyclev1alpha1 "k8s.io/api/lifecycle/v1alpha1"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{evictionRequests(), evictions()}
}

func definition(plural string) resource.Definition {
	return resource.Definition{
		Group: lifecyclev1alpha1.GroupName, Plural: plural, Namespaced: true, HasGeneration: true, Gate: gate.EvictionRequestAPI,
		Strategy: resource.Strategy{ValidateName: validateName},
	}
}

func evictionRequests() *resource.Definition {
	return kind.Kind[*lifecyclev1alpha1.EvictionRequest, *lifecyclev1alpha1.EvictionRequestList]{
		Definition:  definition("evictionrequests"),
		Version:     &resource.Version{Name: "v1alpha1"},
		StatusKeeps: "spec metadata",
		Validate:    validateRequest, ValidateStatus: validateRequestStatus,
		Columns: `
			Target       string  target  .spec.target
			Target Type  string  type    .spec.target
			Status       string  state   .status.conditions
			Requester    string  .spec.requester
			Intent       string  .spec.intent
			Age
		`,
		Cells: kind.Cells{"target": targetOf, "type": targetTypeOf, "state": stateOf},
	}.New()
}

func evictions() *resource.Definition {
	return kind.Kind[*lifecyclev1alpha1.Eviction, *lifecyclev1alpha1.EvictionList]{
		Definition:  definition("evictions"),
		Version:     &resource.Version{Name: "v1alpha1"},
		StatusKeeps: "spec metadata",
		Validate:    validateEviction, ValidateStatus: validateEvictionStatus,
		Columns: `
			Target                     string       target      .spec.target
			Target Type                string       type        .spec.target
			Status                     string       state       .status.conditions
			Active Responder           string       active      .status.targetResponders.state
			Responder Status           string       progress    responder
			Responder Expected Finish  string       finish      .status.responders.expectedCompletionTime
			Requesters                 string       requesters  .status.requesters
			Age
			Responder Heartbeat        string wide  heartbeat   .status.responders.heartbeatTime
			Responder Status Message   string wide  message     .status.responders.message
		`,
		Cells: evictionCells,
		Docs:  kind.Docs{"responder": lifecyclev1alpha1.ResponderStatus{}.SwaggerDoc()[""]},
	}.New()
}

// validateName returns the errors of a name. Kubernetes does not validate the prefix of a generated name.
func validateName(name string, prefix bool) []string {
	if prefix {
		return nil
	}
	return content.IsDNS1123Subdomain(name)
}

// validateSet adds the error of an empty name that Kubernetes reports besides the missing one.
func validateSet(c *rule.Check, name string) {
	if name == "" {
		c.At("metadata", "name").Invalids(name, validateName(name, false))
	}
}

func validateRequest(c *rule.Check, r, old *lifecyclev1alpha1.EvictionRequest) {
	var was *lifecyclev1alpha1.EvictionRequestSpec
	if old != nil {
		was = &old.Spec
	}
	validateSet(c, r.Name)
	c.At("spec").Declared(&r.Spec, was)
}

func validateRequestStatus(c *rule.Check, r, old *lifecyclev1alpha1.EvictionRequest) {
	c = c.At("status")
	c.At("conditions").Conditions(r.Status.Conditions)
	c.Declared(&r.Status, &old.Status)
}

func validateEviction(c *rule.Check, e, old *lifecyclev1alpha1.Eviction) {
	var was *lifecyclev1alpha1.EvictionSpec
	if old != nil {
		was = &old.Spec
	}
	validateSet(c, e.Name)
	c.At("spec").Declared(&e.Spec, was)
}
