package kind

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// ResourceLists rounds resource amounts up to milli-units when they are decoded.
var ResourceLists = rule.Default[corev1.ResourceList](func(list map[string]any) {
	for name, v := range list {
		s, _ := v.(string)
		q, err := resource.ParseQuantity(s)
		if err == nil && !q.RoundUp(resource.Milli) {
			list[name] = q.String()
		}
	}
})

// ValidateAmount validates an amount of any resource at c.
func ValidateAmount(c *rule.Check, amount resource.Quantity) {
	if amount.Value() < 0 {
		c.Invalid(amount.Value(), "must be a valid resource quantity")
	}
}

// ValidateAmountOf validates an amount of a resource at c. Counts of objects and extended resources
// must be integers.
func ValidateAmountOf(c *rule.Check, name corev1.ResourceName, amount resource.Quantity) {
	if amount.Sign() < 0 {
		c.Invalid(amount.String(), apivalidation.IsNegativeErrorMsg)
	}
	if (objects[name] || IsExtended(name)) && amount.MilliValue()%1000 != 0 {
		c.Invalid(amount, "must be an integer")
	}
}

// measured are the resources without a domain that quotas limit, and objects those that count
// objects.
var (
	measured = map[corev1.ResourceName]bool{
		corev1.ResourceCPU: true, corev1.ResourceMemory: true, corev1.ResourceEphemeralStorage: true,
		corev1.ResourceRequestsCPU: true, corev1.ResourceRequestsMemory: true, corev1.ResourceRequestsEphemeralStorage: true,
		corev1.ResourceLimitsCPU: true, corev1.ResourceLimitsMemory: true, corev1.ResourceLimitsEphemeralStorage: true,
		corev1.ResourceRequestsStorage: true,
	}
	objects = map[corev1.ResourceName]bool{
		corev1.ResourcePods: true, corev1.ResourceQuotas: true, corev1.ResourceServices: true,
		corev1.ResourceReplicationControllers: true, corev1.ResourceSecrets: true, corev1.ResourceConfigMaps: true,
		corev1.ResourcePersistentVolumeClaims: true, corev1.ResourceServicesNodePorts: true,
		corev1.ResourceServicesLoadBalancers: true,
	}
)

// IsOfQuota reports whether a quota can limit a resource without a domain.
func IsOfQuota(name corev1.ResourceName) bool {
	return measured[name] || objects[name] || IsHugePages(name) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// IsHugePages reports whether a resource is huge pages.
func IsHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// IsNodeAllocatable reports whether devices can take a resource of their node.
func IsNodeAllocatable(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == corev1.ResourceMemory || IsHugePages(name)
}

// IsNative reports whether a resource belongs to Kubernetes.
func IsNative(name corev1.ResourceName) bool {
	return !hasDomain(name) || strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// IsExtended reports whether a resource is an extended resource, which quotas may limit.
func IsExtended(name corev1.ResourceName) bool {
	return !IsNative(name) && !strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) &&
		len(validation.IsQualifiedName(corev1.DefaultResourceRequestsPrefix+string(name))) == 0
}

func hasDomain(name corev1.ResourceName) bool { return strings.Contains(string(name), "/") }

// ValidateResourceName validates the name of a resource at c.
func ValidateResourceName(c *rule.Check, name corev1.ResourceName) {
	details := validation.IsQualifiedName(string(name))
	c.Invalids(name, details)
	if len(details) == 0 && !hasDomain(name) && !IsOfQuota(name) && name != corev1.ResourceStorage {
		c.Invalid(name, "must be a standard resource type or fully qualified")
	}
}

// ValidateContainerResource is ValidateResourceName for the resource of a container.
func ValidateContainerResource(c *rule.Check, name corev1.ResourceName) {
	ValidateResourceName(c, name)
	switch {
	case !hasDomain(name):
		if name != corev1.ResourceCPU && name != corev1.ResourceMemory && name != corev1.ResourceEphemeralStorage && !IsHugePages(name) {
			c.Invalid(name, "must be a standard resource for containers")
		}
	case !IsNative(name) && !IsExtended(name):
		c.Invalid(name, "doesn't follow extended resource name standard")
	}
}

// ValidateQuotaResource is ValidateResourceName for the resource of a quota.
func ValidateQuotaResource(c *rule.Check, name corev1.ResourceName) {
	ValidateResourceName(c, name)
	if !hasDomain(name) && !IsOfQuota(name) {
		c.Invalid(name, "must be a standard resource for quota")
	}
}
