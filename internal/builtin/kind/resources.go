package kind

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/internal/builtin/rule"
)

// ResourceLists makes amounts of resources whole thousandths when they are decoded.
var ResourceLists = rule.Default[corev1.ResourceList](func(list map[string]any) {
	for name, v := range list {
		s, _ := v.(string)
		q, err := resource.ParseQuantity(s)
		if err == nil && !q.RoundUp(resource.Milli) {
			list[name] = q.String()
		}
	}
})

// ValidateAmount finds what is wrong with an amount of any resource, at which c looks.
func ValidateAmount(c *rule.Check, amount resource.Quantity) {
	if amount.Value() < 0 {
		c.Invalid(amount.Value(), "must be a valid resource quantity")
	}
}
