package usage

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/anykind/anykind/internal/object"
)

var one = *resource.NewQuantity(1, resource.DecimalSI)

// Add adds more to list.
func Add(list, more corev1.ResourceList) {
	for name, amount := range more {
		if sum, ok := list[name]; ok {
			sum.Add(amount)
			list[name] = sum
		} else {
			list[name] = amount.DeepCopy()
		}
	}
}

// Growth returns the increases from was to now.
func Growth(now, was corev1.ResourceList) corev1.ResourceList {
	grown := corev1.ResourceList{}
	for name, amount := range now {
		amount = amount.DeepCopy()
		amount.Sub(was[name])
		if amount.Sign() > 0 {
			grown[name] = amount
		}
	}
	return grown
}

// Equal reports whether two lists are equal.
func Equal(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
}

// Part returns the entries of list whose names are in names.
func Part(list, names corev1.ResourceList) corev1.ResourceList {
	part := corev1.ResourceList{}
	for name, amount := range list {
		if _, ok := names[name]; ok {
			part[name] = amount
		}
	}
	return part
}

// Tree encodes a list as it is stored.
func Tree(list corev1.ResourceList) object.Tree {
	t := object.Tree{}
	for name, amount := range list {
		t[string(name)] = amount.String()
	}
	return t
}

// Text formats a list as Kubernetes does in quota errors.
func Text(list corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		all = append(all, string(name)+"="+amount.String())
	}
	return strings.Join(all, ",")
}

// Scopes returns the scopes of a quota, including those without an operator.
func Scopes(spec *corev1.ResourceQuotaSpec) (all []corev1.ScopedResourceSelectorRequirement) {
	for _, s := range spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: corev1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		all = append(all, spec.ScopeSelector.MatchExpressions...)
	}
	return all
}

// Matches reports whether an object is in all scopes.
func Matches(o Object, scopes []corev1.ScopedResourceSelectorRequirement) (bool, error) {
	for _, s := range scopes {
		if in, err := o.InScope(s); !in || err != nil {
			return false, err
		}
	}
	return true, nil
}
