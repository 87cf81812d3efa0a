package networking

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// A ServiceCIDR has ranges from which cluster IPs are allocated.
func serviceCIDRs() *resource.Definition {
	return kind.Kind[*networkingv1.ServiceCIDR, *networkingv1.ServiceCIDRList]{
		Definition: resource.Definition{
			Group: networkingv1.GroupName, Plural: "servicecidrs",
			Strategy: resource.Strategy{AllowUnconditionalUpdate: true},
		},
		StatusKeeps:    "spec metadata",
		StatusGate:     gate.ServiceCIDRStatusFieldWiping,
		Validate:       validateServiceCIDR,
		ValidateStatus: func(*rule.Check, *networkingv1.ServiceCIDR, *networkingv1.ServiceCIDR) {},
		Columns: `
			CIDRs  string  cidrs  .spec.cidrs
			Age
		`,
		Cells: kind.Cells{"cidrs": func(obj map[string]any) any { return strings.Join(kind.Texts(obj, "spec", "cidrs"), ",") }},
	}.New(beta())
}

// validateServiceCIDR allows only one change of the ranges: adding one of the other family.
func validateServiceCIDR(c *rule.Check, s, old *networkingv1.ServiceCIDR) {
	c, cidrs := c.At("spec", "cidrs"), s.Spec.CIDRs
	if old == nil {
		validateCIDRs(c, cidrs)
		return
	}
	switch was := old.Spec.CIDRs; {
	case len(cidrs) == len(was):
		for i := range was {
			c.At(i).Immutable(cidrs[i], was[i])
		}
	case len(was) == 1 && len(cidrs) == 2:
		c.At(0).Immutable(cidrs[0], was[0])
		validateCIDRs(c, cidrs)
	default:
		c.Invalid(cidrs, "field is immutable")
	}
}

func validateCIDRs(c *rule.Check, cidrs []string) {
	switch n := len(cidrs); {
	case n == 0:
		c.Required("at least one CIDR required")
		return
	case n > 2:
		// As in Kubernetes, the value is more than the field.
		c.Invalid(struct{ CIDRs []string }{cidrs}, "may only hold up to 2 values")
		return
	}
	families := map[netutils.IPFamily]int{}
	for i, cidr := range cidrs {
		c.Add(validation.IsValidCIDR(c.At(i).Path(), cidr)...)
		families[netutils.IPFamilyOfCIDRString(cidr)]++
	}
	if families[netutils.IPv4] == 2 || families[netutils.IPv6] == 2 {
		c.Invalid(cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64")
	}
}
