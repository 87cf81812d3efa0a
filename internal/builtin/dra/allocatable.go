package dra

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
)

// validateAllocatable validates the resources of the node that a device takes.
func validateAllocatable(c *rule.Check, d *resourcev1.Device) {
	for _, name := range kind.SortedKeys(d.NodeAllocatableResources) {
		r, at := d.NodeAllocatableResources[name], c.AtKey(string(name))
		if !kind.IsNodeAllocatable(name) {
			at.Invalid(name, "must be a node allocatable resource name")
		}
		if r.Mapping == nil && r.Overhead == nil {
			at.Required("at least one of mapping or overhead must be set")
		}
		if r.Mapping != nil {
			validateMapping(at.At("mapping"), r.Mapping, d.Capacity)
		}
		if r.Overhead != nil {
			validateOverhead(at.At("overhead"), r.Overhead)
		}
	}
}

func validateMapping(c *rule.Check, m *resourcev1.NodeAllocatableMapping, capacity map[resourcev1.QualifiedName]resourcev1.DeviceCapacity) {
	positive := func(name string, q *resource.Quantity) {
		if q != nil && q.Sign() <= 0 {
			c.At(name).Invalid(q.String(), "must be positive")
		}
	}
	requires := func(name, detail string) {
		c.Add(field.Required(c.At(name).Path(), detail).WithOrigin("dependentRequired").MarkCoveredByDeclarative())
	}
	if m.CapacityKey != nil {
		key := c.At("capacityKey")
		if *m.CapacityKey == "" {
			key.Invalid("", "capacityKey must not be an empty string")
		} else if _, ok := capacity[*m.CapacityKey]; !ok {
			c.Add(field.NotFound(key.Path(), *m.CapacityKey))
		}
		if m.CapacityMultiplier == nil {
			requires("capacityMultiplier", "capacityMultiplier is required when capacityKey is set")
		}
		positive("capacityMultiplier", m.CapacityMultiplier)
	} else if m.CapacityMultiplier != nil {
		requires("capacityKey", "capacityKey is required when capacityMultiplier is set")
	}
	positive("deviceMultiplier", m.DeviceMultiplier)
}

func validateOverhead(c *rule.Check, o *resourcev1.NodeAllocatableOverhead) {
	if o.PerPod == nil && o.PerContainer == nil {
		c.Invalid("", "at least one of perPod or perContainer must be set")
	}
	for _, of := range []struct {
		name string
		q    *resource.Quantity
	}{{"perPod", o.PerPod}, {"perContainer", o.PerContainer}} {
		if of.q != nil && of.q.Sign() < 0 {
			c.At(of.name).Invalid(of.q.String(), "must be non-negative")
		}
	}
}
