package storage

import (
	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

func capacities() *resource.Definition {
	return kind.Kind[*storagev1.CSIStorageCapacity, *storagev1.CSIStorageCapacityList]{
		Definition: resource.Definition{Group: storagev1.GroupName, Plural: "csistoragecapacities", Namespaced: true},
		Validate:   validateCapacity,
		Warn: func(c *rule.Check, capacity, _ *storagev1.CSIStorageCapacity) {
			kind.WarnOfNodeLabels(c.At("nodeTopology"), capacity.NodeTopology)
		},
		Columns: `Created At  date  .metadata.creationTimestamp`,
	}.New()
}

func validateCapacity(c *rule.Check, capacity, old *storagev1.CSIStorageCapacity) {
	var may metavalidation.LabelSelectorValidationOptions
	if old != nil && len(metavalidation.ValidateLabelSelector(old.NodeTopology, may, nil)) > 0 {
		may.AllowInvalidLabelValueInSelector = true
	}
	topology, class := c.At("nodeTopology"), c.At("storageClassName")
	c.Add(metavalidation.ValidateLabelSelector(capacity.NodeTopology, may, topology.Path())...)
	class.Invalids(capacity.StorageClassName, validation.IsDNS1123Subdomain(capacity.StorageClassName))
	if n := capacity.Capacity; n != nil && n.Sign() < 0 {
		c.At("capacity").Invalid(n.String(), apivalidation.IsNegativeErrorMsg)
	}
	if old != nil {
		topology.Immutable(capacity.NodeTopology, old.NodeTopology)
		class.Immutable(capacity.StorageClassName, old.StorageClassName)
	}
}
