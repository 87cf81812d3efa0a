package networking

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

// A ServiceCIDR says from which addresses Services are given theirs.
func serviceCIDRs() *resource.Definition {
	return kind.New(resource.Definition{
		Group: networkingv1.GroupName, Plural: "servicecidrs", Singular: "servicecidr", Kind: "ServiceCIDR",

		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			ValidateName:             apivalidation.NameIsDNSSubdomain,
			Validate:                 resource.Looking(validateServiceCIDR),
		},
	}, kind.VersionOf[networkingv1.ServiceCIDR, networkingv1.ServiceCIDRList](&resource.Version{
		Name: "v1",
		Revert: resource.Changing(func(obj, old map[string]any) {
			obj["status"] = map[string]any{}
			if old != nil {
				kind.Put(obj, "status", old["status"])
			}
		}),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"}, Fields: []string{"status"},
			Revert:   resource.Changing(revertServiceCIDRSpec),
			Validate: resource.Looking(func(obj, _ map[string]any) field.ErrorList { return kind.MetaFinalizers(obj) }),
		}},
		Columns: []resource.Column{
			{
				Name: "CIDRs", Type: "string", Description: networkingv1.ServiceCIDRSpec{}.SwaggerDoc()["cidrs"],
				Cell: func(obj map[string]any) any { return strings.Join(kind.Texts(obj, "spec", "cidrs"), ",") },
			},
			kind.AgeColumn(),
		},
	}))
}

// revertServiceCIDRSpec leaves all but the status alone.
func revertServiceCIDRSpec(obj, old map[string]any) {
	kind.Put(obj, "spec", old["spec"])
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		kind.Put(kind.Child(obj, "metadata"), name, kind.Value(old, "metadata", name))
	}
}

// validateServiceCIDR lets a range be there for good, but for one of the other family
// that is added.
func validateServiceCIDR(obj, old map[string]any) field.ErrorList {
	errs := kind.MetaFinalizers(obj)
	at, cidrs := field.NewPath("spec", "cidrs"), kind.Texts(obj, "spec", "cidrs")
	if old == nil {
		return append(errs, validateCIDRs(cidrs, at)...)
	}
	const immutable = "field is immutable"
	was := kind.Texts(old, "spec", "cidrs")
	switch {
	case len(cidrs) == len(was):
		for i := range was {
			if cidrs[i] != was[i] {
				errs = append(errs, field.Invalid(at.Index(i), cidrs[i], immutable))
			}
		}
	case len(was) == 1 && len(cidrs) == 2:
		if cidrs[0] != was[0] {
			errs = append(errs, field.Invalid(at.Index(0), cidrs[0], immutable))
		}
		errs = append(errs, validateCIDRs(cidrs, at)...)
	default:
		errs = append(errs, field.Invalid(at, kind.List(obj, "spec", "cidrs"), immutable))
	}
	return errs
}

func validateCIDRs(cidrs []string, at *field.Path) (errs field.ErrorList) {
	switch n := len(cidrs); {
	case n == 0:
		return field.ErrorList{field.Required(at, "at least one CIDR required")}
	case n > 2:
		// Kubernetes shows more than the field here.
		return field.ErrorList{field.Invalid(at, struct{ CIDRs []string }{cidrs}, "may only hold up to 2 values")}
	}
	families := map[netutils.IPFamily]int{}
	for i, cidr := range cidrs {
		errs = append(errs, validation.IsValidCIDR(at.Index(i), cidr)...)
		families[netutils.IPFamilyOfCIDRString(cidr)]++
	}
	if families[netutils.IPv4] == 2 || families[netutils.IPv6] == 2 {
		errs = append(errs, field.Invalid(at, cidrs, "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"))
	}
	return errs
}
