package storage

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

func nodes() *resource.Definition {
	return kind.Kind[*storagev1.CSINode, *storagev1.CSINodeList]{
		Definition: resource.Definition{
			Group: storagev1.GroupName, Plural: "csinodes", ReturnsDeleted: true,
		},
		StatusKeeps: "spec metadata",
		Validate:    validateNode, ValidateStatus: validateNodeStatus,
		Columns: `
			Drivers  integer  drivers  "Drivers indicates the number of CSI drivers registered on the node"
			Age
		`,
		Cells: kind.Cells{"drivers": func(obj map[string]any) any { return int64(len(kind.List(obj, "spec", "drivers"))) }},
	}.New()
}

func validateNode(c *rule.Check, node, old *storagev1.CSINode) {
	c = c.At("spec", "drivers")
	names := map[string]bool{}
	for i := range node.Spec.Drivers {
		d := &node.Spec.Drivers[i]
		validateNodeDriver(c.At(i), d)
		if names[d.Name] {
			c.At(i, "name").Duplicate(d.Name)
		}
		names[d.Name] = true
	}
	if old == nil {
		return
	}
	for _, was := range old.Spec.Drivers {
		for _, is := range node.Spec.Drivers {
			if is.Name == was.Name {
				if c.Gates.On(gate.MutableCSINodeAllocatableCount) {
					is.Allocatable, was.Allocatable = nil, nil
				}
				c.Immutable(is, was)
			}
		}
	}
}

func validateNodeStatus(c *rule.Check, node, _ *storagev1.CSINode) {
	c = c.At("status", "storageHealth")
	names := map[string]bool{}
	for i := range node.Status.StorageHealth {
		health, at := &node.Status.StorageHealth[i], c.At(i)
		if names[health.Name] {
			at.Duplicate(health.Name)
		}
		names[health.Name] = true
		if health.Name == "" {
			at.At("name").Required("")
		} else {
			kind.ValidateDriverName(at.At("name"), health.Name)
		}
		if n := len(health.HealthConditions); n > 16 {
			at.At("healthConditions").TooMany(n, 16)
			continue
		}
		for j := range health.HealthConditions {
			at.Walk(&health.HealthConditions[j], "healthConditions", j)
		}
	}
}

func validateNodeDriver(c *rule.Check, d *storagev1.CSINodeDriver) {
	kind.ValidateDriverName(c.At("name"), d.Name)
	switch at := c.At("nodeID"); {
	case d.NodeID == "":
		at.Required("")
	case len(d.NodeID) > 256:
		at.Invalid(d.NodeID, fmt.Sprintf("must be %d characters or less", 256))
	}
	if a := d.Allocatable; a != nil && a.Count != nil && *a.Count < 0 {
		c.At("allocatable", "count").Invalid(int64(*a.Count), apivalidation.IsNegativeErrorMsg)
	}
	keys := map[string]bool{}
	for _, key := range d.TopologyKeys {
		if key == "" {
			c.Required("")
		}
		if keys[key] {
			c.Duplicate(key)
		}
		keys[key] = true
		c.Invalids(key, validation.IsQualifiedName(key))
	}
}
