package dra

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

func warnOfSlice(c *rule.Check, s, _ *resourcev1.ResourceSlice) {
	if name := s.Spec.Driver; name != strings.ToLower(name) {
		c.Warn("spec.driver: driver names should be lowercase; %q contains uppercase characters", name)
	}
}

func validateSlice(c *rule.Check, s, old *resourcev1.ResourceSlice) {
	c = c.At("spec")
	var was *resourcev1.ResourceSliceSpec
	if old != nil {
		was = &old.Spec
	}
	merged(c, resourcev1.Validate_ResourceSliceSpec, &s.Spec, was, func(own *rule.Check) {
		validateSliceSpec(own.At("spec"), &s.Spec, was)
	})
}

func validateSliceSpec(c *rule.Check, spec, old *resourcev1.ResourceSliceSpec) {
	c.Add(driver(spec.Driver, c.At("driver").Path())...)
	name := c.At("pool", "name")
	c.Add(pool(spec.Pool.Name, name.Path())...)
	if n := spec.Pool.ResourceSliceCount; n <= 0 {
		c.At("pool", "resourceSliceCount").Invalid(n, "must be greater than zero")
	}
	if n := spec.Pool.Generation; n < 0 {
		c.At("pool", "generation").Invalid(n, "must be greater than or equal to zero")
	}
	if old != nil {
		c.Add(apivalidation.ValidateImmutableField(spec.Pool.Name, old.Pool.Name, name.Path())...)
		c.Add(apivalidation.ValidateImmutableField(spec.Driver, old.Driver, c.At("driver").Path())...)
		c.Add(apivalidation.ValidateImmutableField(spec.NodeName, old.NodeName, c.At("nodeName").Path())...)
	}
	validateNodes(c, spec)
	if spec.SharedCounters != nil && spec.Devices != nil {
		c.Invalid("", "only one of `sharedCounters` or `devices` is allowed")
	}
	validateSliceDevices(c.At("devices"), spec, old)
	validateSharedCounters(c.At("sharedCounters"), spec)
	if spec.PartitionTypeAttribute != nil {
		validatePartitionType(c, spec)
	}
	validateSkipped(c.At("skipNodeOperations"), spec.SkipNodeOperations)
}

func validateSharedCounters(at *rule.Check, spec *resourcev1.ResourceSliceSpec) {
	if tooMany(at, len(spec.SharedCounters), resourcev1.ResourceSliceMaxCounterSets, true) {
		return
	}
	var names []string
	for i := range spec.SharedCounters {
		s := &spec.SharedCounters[i]
		validateCounters(at.At(i), "name", s.Name, s.Counters, resourcev1.ResourceSliceMaxCountersPerCounterSet)
		names = append(names, s.Name)
	}
	unique(at, true, names...)
}

// validateNodes checks that a slice selects its nodes in exactly one way.
func validateNodes(c *rule.Check, spec *resourcev1.ResourceSliceSpec) {
	var set []string
	if n := spec.NodeName; n != nil {
		if *n != "" {
			set = append(set, "`nodeName`")
			c.Add(nodeName(*n, c.At("nodeName").Path())...)
		} else {
			c.At("nodeName").Invalid(*n, "must be either unset or set to a non-empty string")
		}
	}
	if spec.NodeSelector != nil {
		set = append(set, "`nodeSelector`")
		validateOneTerm(c.At("nodeSelector"), spec.NodeSelector)
	}
	if isTrue(c.At("allNodes"), spec.AllNodes) {
		set = append(set, "`allNodes`")
	}
	if isTrue(c.At("perDeviceNodeSelection"), spec.PerDeviceNodeSelection) {
		set = append(set, "`perDeviceNodeSelection`")
	}
	const detail = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	switch len(set) {
	case 0:
		c.Required(detail)
	case 1:
	default:
		c.Invalid(fmt.Sprintf("{%s}", strings.Join(set, ", ")), detail+", but multiple fields are set")
	}
}

func validateOneTerm(c *rule.Check, s *corev1.NodeSelector) {
	kind.ValidateNodeSelector(c, s, false)
	if len(s.NodeSelectorTerms) != 1 {
		c.At("nodeSelectorTerms").Invalid(s.NodeSelectorTerms, "must have exactly one node selector term")
	}
}

// isTrue reports whether a field is set. Its only valid value is true.
func isTrue(c *rule.Check, v *bool) bool {
	if v != nil && !*v {
		c.Invalid(*v, "must be either unset or set to true")
	}
	return v != nil && *v
}

// validatePartitionType checks that each device with consumed counters has the attribute for the type of its
// partition, as a string. The domain of the name is optional if it is the driver.
func validatePartitionType(c *rule.Check, spec *resourcev1.ResourceSliceSpec) {
	name := string(*spec.PartitionTypeAttribute)
	at := c.At("partitionTypeAttribute")
	if !slices.ContainsFunc(spec.Devices, func(d resourcev1.Device) bool { return len(d.ConsumesCounters) > 0 }) {
		at.Invalid(name, "may only be set on a slice which declares devices that consume counters")
		return
	}
	if len(fullyQualified(name, at.Path())) > 0 {
		return // an error of declarative validation
	}
	for i := range spec.Devices {
		d := &spec.Devices[i]
		if len(d.ConsumesCounters) == 0 {
			continue
		}
		at := c.At("devices", i, "attributes").AtKey(name)
		a, ok := d.Attributes[resourcev1.QualifiedName(name)]
		if !ok {
			a, ok = d.Attributes[resourcev1.QualifiedName(strings.TrimPrefix(name, spec.Driver+"/"))]
		}
		switch {
		case !ok:
			at.Required("device consumes counters and `partitionTypeAttribute` names this attribute, so it must be set")
		case a.StringValue == nil:
			at.Invalid(rule.Shown(a), "must be a string value because `partitionTypeAttribute` names this attribute")
		}
	}
}

// validateSkipped checks that a node skips unpreparing devices if it skips preparing them.
func validateSkipped(c *rule.Check, skipped []resourcev1.SkipNodeOperation) {
	if slices.Contains(skipped, resourcev1.SkipNodeOperationNodePrepareResources) &&
		!slices.Contains(skipped, resourcev1.SkipNodeOperationNodeUnprepareResources) &&
		!slices.Contains(skipped, resourcev1.SkipNodeOperationAll) {
		c.Invalid(skipped, "NodePrepareResources cannot be skipped unless NodeUnprepareResources is also skipped")
	}
}

func validateSliceDevices(c *rule.Check, spec, old *resourcev1.ResourceSliceSpec) {
	max := resourcev1.ResourceSliceMaxDevices
	if slices.ContainsFunc(spec.Devices, func(d resourcev1.Device) bool {
		return len(d.Taints) > 0 || len(d.ConsumesCounters) > 0 || hasLists(&d)
	}) {
		max = resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
	}
	if tooMany(c, len(spec.Devices), max, false) {
		return
	}
	was := map[string]*resourcev1.Device{}
	if old != nil {
		for i := range slices.Backward(old.Devices) {
			was[old.Devices[i].Name] = &old.Devices[i]
		}
	}
	var names []string
	for i := range spec.Devices {
		d := &spec.Devices[i]
		validateDevice(c.At(i), d, was[d.Name], spec.PerDeviceNodeSelection != nil && *spec.PerDeviceNodeSelection)
		names = append(names, d.Name)
	}
	unique(c, false, names...)
}

// validateCounters validates counters and the name of their set.
func validateCounters(c *rule.Check, field, set string, counters map[string]resourcev1.Counter, max int) {
	c.Add(counterName(set, c.At(field).Path())...)
	at := c.At("counters")
	switch {
	case len(counters) == 0:
		c.Add(required(at))
	case len(counters) > max:
		at.TooMany(len(counters), max)
	default:
		for _, name := range kind.SortedKeys(counters) {
			c.Add(label(name, at.Path()).MarkCoveredByDeclarative()...)
		}
	}
}
