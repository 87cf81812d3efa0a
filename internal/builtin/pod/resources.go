package pod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func isHugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// isDivisible reports whether an amount of huge pages is one of whole pages. Amounts of
// anything else are.
func isDivisible(name corev1.ResourceName, amount resource.Quantity) bool {
	if !isHugePages(name) {
		return true
	}
	size, err := resource.ParseQuantity(strings.TrimPrefix(string(name), corev1.ResourceHugePagesPrefix))
	return err == nil && size.Sign() > 0 && !isFractional(size) && amount.Value()%size.Value() == 0
}

// isFractional reports whether an amount is not a whole number.
func isFractional(amount resource.Quantity) bool { return amount.MilliValue()%1000 != 0 }
