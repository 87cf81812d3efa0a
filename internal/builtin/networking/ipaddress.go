package networking

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// An IPAddress allocates the address in its name to its parent.
func ipAddresses() *resource.Definition {
	return kind.Kind[*networkingv1.IPAddress, *networkingv1.IPAddressList]{
		Definition: resource.Definition{
			Group: networkingv1.GroupName, Plural: "ipaddresses", ShortNames: []string{"ip"},
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true, ValidateName: isAddress},
		},
		Validate: validateIPAddress,
		Columns:  "ParentRef  string  parent  .spec.parentRef",
		Cells:    kind.Cells{"parent": parentOf},
	}.New(beta())
}

// parentOf returns the cell with the parent of an IPAddress.
func parentOf(obj map[string]any) any {
	ref := kind.Tree(obj, "spec", "parentRef")
	if ref == nil {
		return "<none>"
	}
	of := schema.GroupResource{Group: kind.Text(ref, "group"), Resource: kind.Text(ref, "resource")}
	parts := []string{strings.ToLower(of.String())}
	if namespace := kind.Text(ref, "namespace"); namespace != "" {
		parts = append(parts, namespace)
	}
	return strings.Join(append(parts, kind.Text(ref, "name")), "/")
}

// isAddress returns the errors of a name, which must be an IP address in canonical form.
func isAddress(name string, _ bool) (wrong []string) {
	for _, err := range validation.IsValidIP(nil, name) {
		wrong = append(wrong, err.Detail)
	}
	return wrong
}

func validateIPAddress(c *rule.Check, address, old *networkingv1.IPAddress) {
	c.Walk(&address.Spec, "spec")
	c = c.At("spec", "parentRef")
	if address.Spec.ParentRef == nil {
		c.Required("")
	}
	if old != nil {
		c.UnchangedBeta(address.Spec.ParentRef, old.Spec.ParentRef)
	}
}
