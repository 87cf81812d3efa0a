package dra

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
)

// validateClaim allows no change of the spec.
func validateClaim(c *rule.Check, claim, old *resourcev1.ResourceClaim) {
	if old == nil {
		c = c.At("spec")
		merged(c, resourcev1.Validate_ResourceClaimSpec, &claim.Spec, nil, func(own *rule.Check) {
			validateClaimSpec(own.At("spec"), &claim.Spec)
		})
		return
	}
	c.At("spec").UnchangedBeta(claim.Spec, old.Spec)
}

func validateClaimSpec(c *rule.Check, spec *resourcev1.ResourceClaimSpec) {
	c = c.At("devices")
	devices := &spec.Devices
	names, derived := namesOf(devices), newDerivation(devices)
	if at := c.At("requests"); !tooMany(at, len(devices.Requests), resourcev1.DeviceRequestsMaxSize, true) {
		var all []string
		for i := range devices.Requests {
			validateDeviceRequest(at.At(i), &devices.Requests[i], derived)
			all = append(all, devices.Requests[i].Name)
		}
		unique(at, true, all...)
	}
	if at := c.At("constraints"); !tooMany(at, len(devices.Constraints), resourcev1.DeviceConstraintsMaxSize, true) {
		for i := range devices.Constraints {
			validateConstraint(at.At(i), &devices.Constraints[i], names)
		}
	}
	if at := c.At("config"); !tooMany(at, len(devices.Config), resourcev1.DeviceConfigMaxSize, true) {
		for i := range devices.Config {
			config := &devices.Config[i]
			validateReferences(at.At(i, "requests"), config.Requests, names)
			validateConfiguration(at.At(i), config.DeviceConfiguration, false)
		}
	}
	derived.limitCost(c)
}

// requests are the names of the requests of a claim, and of the subrequests of each.
type requests map[string]map[string]bool

func namesOf(claim *resourcev1.DeviceClaim) requests {
	names := requests{}
	for _, r := range claim.Requests {
		names[r.Name] = map[string]bool{}
		for _, alternative := range r.FirstAvailable {
			names[r.Name][alternative.Name] = true
		}
	}
	return names
}

func (r requests) has(name string) bool {
	request, alternative, ok := strings.Cut(name, "/")
	alternatives, found := r[request]
	return found && (!ok || alternatives[alternative])
}

func validateDeviceRequest(c *rule.Check, r *resourcev1.DeviceRequest, derived *derivation) {
	c.Add(label(r.Name, c.At("name").Path())...)
	switch {
	case len(r.FirstAvailable) == 0 && r.Exactly == nil:
		c.Required("exactly one of `exactly` or `firstAvailable` is required")
	case len(r.FirstAvailable) > 0 && r.Exactly != nil:
		c.Invalid(nil, "exactly one of `exactly` or `firstAvailable` is required, but multiple fields are set")
	case r.Exactly != nil:
		e, at := r.Exactly, c.At("exactly")
		at.Add(className(e.DeviceClassName, at.At("deviceClassName").Path())...)
		validateAsked(at, e)
		derived.validate(at.At("derivedAttributes"), e.DerivedAttributes, r.Name)
	default:
		at := c.At("firstAvailable")
		if tooMany(at, len(r.FirstAvailable), resourcev1.FirstAvailableDeviceRequestMaxSize, true) {
			return
		}
		var names []string
		for i := range r.FirstAvailable {
			s, at := &r.FirstAvailable[i], at.At(i)
			names = append(names, s.Name)
			at.Add(label(s.Name, at.At("name").Path())...)
			at.Add(className(s.DeviceClassName, at.At("deviceClassName").Path()).MarkCoveredByDeclarative()...)
			validateAsked(at, &resourcev1.ExactDeviceRequest{
				Selectors: s.Selectors, AllocationMode: s.AllocationMode, Count: s.Count, Tolerations: s.Tolerations,
			})
			derived.validate(at.At("derivedAttributes"), s.DerivedAttributes, r.Name+"/"+s.Name)
		}
		unique(at, true, names...)
	}
}

// validateAsked validates the common fields of requests and subrequests.
func validateAsked(c *rule.Check, r *resourcev1.ExactDeviceRequest) {
	validateSelectors(c.At("selectors"), r.Selectors, false)
	count := c.At("count")
	switch r.AllocationMode {
	case resourcev1.DeviceAllocationModeAll:
		if r.Count != 0 {
			count.Invalid(r.Count, fmt.Sprintf("must not be specified when allocationMode is '%s'", r.AllocationMode))
		}
	case resourcev1.DeviceAllocationModeExactCount:
		if r.Count <= 0 {
			count.Invalid(r.Count, "must be greater than zero")
		}
	default:
		modes := []resourcev1.DeviceAllocationMode{resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount}
		c.Add(field.NotSupported(c.At("allocationMode").Path(), r.AllocationMode, modes).MarkCoveredByDeclarative())
	}
	for i := range r.Tolerations {
		validateToleration(c.At("tolerations", i), &r.Tolerations[i])
	}
}

func validateConstraint(c *rule.Check, constraint *resourcev1.DeviceConstraint, names requests) {
	validateReferences(c.At("requests"), constraint.Requests, names)
	switch {
	case constraint.MatchAttribute != nil:
		c.Add(fullyQualified(string(*constraint.MatchAttribute), c.At("matchAttribute").Path()).MarkCoveredByDeclarative()...)
	case constraint.DistinctAttribute != nil:
		c.Add(fullyQualified(string(*constraint.DistinctAttribute), c.At("distinctAttribute").Path()).MarkCoveredByDeclarative()...)
	case !c.Gates.On(gate.DRAConsumableCapacity):
		c.At("matchAttribute").Required("")
	default:
		c.Required(`exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`)
	}
}

// validateReferences checks that the names of requests exist.
func validateReferences(c *rule.Check, references []string, names requests) {
	if tooMany(c, len(references), resourcev1.DeviceRequestsMaxSize, true) {
		return
	}
	for i, name := range references {
		validateReference(c.At(i), name, names)
	}
	unique(c, true, references...)
}

func validateReference(c *rule.Check, name string, names requests) {
	const detail = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	segments := strings.Split(name, "/")
	if len(segments) > 2 {
		c.Invalid(name, detail)
		return
	}
	for _, s := range segments {
		c.Add(label(s, c.Path())...)
	}
	if !names.has(name) {
		c.Invalid(name, detail)
	}
}

// validateConfiguration validates opaque parameters of a driver. Stored ones may be longer than new
// ones.
func validateConfiguration(c *rule.Check, config resourcev1.DeviceConfiguration, stored bool) {
	c = c.At("opaque")
	if config.Opaque == nil {
		c.Required("")
		return
	}
	c.Add(driver(config.Opaque.Driver, c.At("driver").Path()).MarkCoveredByDeclarative()...)
	max := resourcev1.OpaqueParametersMaxLength
	if stored {
		max = len(config.Opaque.Parameters.Raw)
	}
	validateRaw(c.At("parameters"), config.Opaque.Parameters.Raw, max)
}
