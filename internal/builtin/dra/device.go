package dra

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// maxKey limits the bytes of the name of an attribute or a capacity.
const maxKey = resourcev1.DeviceMaxDomainLength + len("/") + resourcev1.DeviceMaxIDLength

func required(c *rule.Check) *field.Error {
	return field.Required(c.Path(), "").MarkCoveredByDeclarative()
}

func counterName(name string, at *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(at, "").MarkCoveredByDeclarative()}
	}
	return label(name, at).MarkCoveredByDeclarative()
}

// validateDevice validates a device. Expensive checks skip unchanged values. ofDevices means that
// each device of the slice selects its nodes.
func validateDevice(c *rule.Check, d, old *resourcev1.Device, ofDevices bool) {
	c.Add(label(d.Name, c.At("name").Path())...)
	if n := len(d.Attributes) + len(d.Capacity); n > resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice {
		c.Invalid(n, fmt.Sprintf("the total number of attributes and capacities must not exceed %d", resourcev1.ResourceSliceMaxAttributesAndCapacitiesPerDevice))
	}
	if n := valuesOf(d); n > resourcev1.ResourceSliceMaxAttributeValuesPerDevice {
		c.Invalid(n, fmt.Sprintf("the total number of attribute values must not exceed %d", resourcev1.ResourceSliceMaxAttributeValuesPerDevice))
	}
	at := c.At("attributes")
	for _, name := range kind.SortedKeys(d.Attributes) {
		c.Add(qualified(string(name), at.Path())...)
		attribute := d.Attributes[name]
		validateAttribute(at.AtKey(shortened(string(name), maxKey)), &attribute)
	}
	if old == nil || !equality.Semantic.DeepEqual(old.Capacity, d.Capacity) {
		shared := d.AllowMultipleAllocations != nil && *d.AllowMultipleAllocations
		at := c.At("capacity")
		for _, name := range kind.SortedKeys(d.Capacity) {
			c.Add(qualified(string(name), at.Path())...)
			capacity := d.Capacity[name]
			validateCapacity(at.AtKey(shortened(string(name), maxKey)), &capacity, shared)
		}
	}
	if at := c.At("taints"); old == nil || !equality.Semantic.DeepEqual(old.Taints, d.Taints) {
		if !tooMany(at, len(d.Taints), resourcev1.DeviceTaintsMaxLength, false) {
			for i := range d.Taints {
				validateTaint(at.At(i), &d.Taints[i], false)
			}
		}
	}
	if at := c.At("consumesCounters"); !tooMany(at, len(d.ConsumesCounters), resourcev1.ResourceSliceMaxDeviceCounterConsumptionsPerDevice, true) {
		var names []string
		for i := range d.ConsumesCounters {
			consumed := &d.ConsumesCounters[i]
			validateCounters(at.At(i), "counterSet", consumed.CounterSet, consumed.Counters, resourcev1.ResourceSliceMaxCountersPerDeviceCounterConsumption)
			names = append(names, consumed.CounterSet)
		}
		unique(at, true, names...)
	}
	validateNodesOfDevice(c, d, ofDevices)
	validateBinding(c, d.BindingConditions, d.BindingFailureConditions)
	validateAllocatable(c.At("nodeAllocatableResources"), d)
}

// hasLists reports whether a device has an attribute with a list.
func hasLists(d *resourcev1.Device) bool {
	for _, a := range d.Attributes {
		if a.BoolValues != nil || a.IntValues != nil || a.StringValues != nil || a.VersionValues != nil {
			return true
		}
	}
	return false
}

// valuesOf counts the values of all attributes. A list has several.
func valuesOf(d *resourcev1.Device) (n int) {
	for _, a := range d.Attributes {
		n += max(1, len(a.BoolValues)+len(a.IntValues)+len(a.StringValues)+len(a.VersionValues))
	}
	return n
}

func validateNodesOfDevice(c *rule.Check, d *resourcev1.Device, ofDevices bool) {
	if !ofDevices {
		if d.NodeName != nil || d.NodeSelector != nil || d.AllNodes != nil {
			c.Invalid(nil, "`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec")
		}
		return
	}
	var set []string
	if n := d.NodeName; n != nil {
		if *n != "" {
			set = append(set, "`nodeName`")
			c.Add(nodeName(*n, c.At("nodeName").Path())...)
		} else {
			c.At("nodeName").Invalid(*n, "must not be empty")
		}
	}
	if d.NodeSelector != nil {
		set = append(set, "`nodeSelector`")
		kind.ValidateNodeSelector(c.At("nodeSelector"), d.NodeSelector, false)
	}
	if isTrue(c.At("allNodes"), d.AllNodes) {
		set = append(set, "`allNodes`")
	}
	const detail = "exactly one of `nodeName`, `nodeSelector`, or `allNodes` is required when `perDeviceNodeSelection` is set to true in the ResourceSlice spec"
	switch len(set) {
	case 0:
		c.Required(detail)
	case 1:
	default:
		c.Invalid(fmt.Sprintf("{%s}", strings.Join(set, ", ")), detail)
	}
}

// validateAttribute validates an attribute with one value or a list.
func validateAttribute(c *rule.Check, a *resourcev1.DeviceAttribute) {
	const longest = resourcev1.DeviceAttributeMaxValueLength
	text := func(at *field.Path, s string) field.ErrorList {
		if len(s) > longest {
			return field.ErrorList{field.TooLong(at, "", longest)}
		}
		return nil
	}
	versioned := func(at *field.Path, s string) field.ErrorList {
		if !kind.SemanticVersion().MatchString(s) {
			return append(field.ErrorList{field.Invalid(at, s, "must be a string compatible with semver.org spec 2.0.0")}, text(at, s)...)
		}
		return text(at, s)
	}
	set := 0
	count := func(is bool) bool {
		if is {
			set++
		}
		return is
	}
	count(a.BoolValue != nil)
	count(a.IntValue != nil)
	if count(a.StringValue != nil) {
		c.Add(text(c.At("string").Path(), *a.StringValue)...)
	}
	if count(a.VersionValue != nil) {
		c.Add(versioned(c.At("version").Path(), *a.VersionValue)...)
	}
	if count(a.BoolValues != nil) && len(a.BoolValues) == 0 {
		c.At("bools").Invalid(a.BoolValues, "must not be empty if specified")
	}
	if count(a.IntValues != nil) && len(a.IntValues) == 0 {
		c.At("ints").Invalid(a.IntValues, "must not be empty if specified")
	}
	if count(a.StringValues != nil) && len(a.StringValues) == 0 {
		c.At("strings").Invalid(a.StringValues, "must not be empty if specified")
	}
	for i, s := range a.StringValues {
		c.Add(text(c.At("strings", i).Path(), s).WithOrigin("maxBytes").MarkCoveredByDeclarative()...)
	}
	if count(a.VersionValues != nil) && len(a.VersionValues) == 0 {
		c.At("versions").Invalid(a.VersionValues, "must not be empty if specified")
	}
	for i, s := range a.VersionValues {
		c.Add(versioned(c.At("versions", i).Path(), s)...)
	}
	if set != 1 {
		var shown any = ""
		if set > 1 {
			shown = rule.Shown(*a)
		}
		c.Add(field.Invalid(c.Path(), shown, "exactly one value must be specified").WithOrigin("union").MarkCoveredByDeclarative())
	}
}
