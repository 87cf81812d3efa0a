package networking

import (
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

// An IPAddress says that the address that is its name is taken, and by whom.
func ipAddresses() *resource.Definition {
	return kind.New(resource.Definition{
		Group: networkingv1.GroupName, Plural: "ipaddresses", Singular: "ipaddress", Kind: "IPAddress", ShortNames: []string{"ip"},

		Strategy: resource.Strategy{
			AllowUnconditionalUpdate: true,
			ValidateName:             isAddress,
			Validate:                 resource.Looking(validateIPAddress),
		},
	}, kind.VersionOf[networkingv1.IPAddress, networkingv1.IPAddressList](&resource.Version{Name: "v1", Columns: []resource.Column{
		{Name: "ParentRef", Type: "string", Description: networkingv1.IPAddressSpec{}.SwaggerDoc()["parentRef"], Cell: parentOf},
	}}))
}

// parentOf shows whose the address is.
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

// isAddress says what is wrong with a name that is to be an address, in its one
// canonical form.
func isAddress(name string, _ bool) (wrong []string) {
	for _, err := range validation.IsValidIP(nil, name) {
		wrong = append(wrong, err.Detail)
	}
	return wrong
}

func validateIPAddress(obj, old map[string]any) field.ErrorList {
	errs := kind.MetaFinalizers(obj)
	at := field.NewPath("spec", "parentRef")
	address := kind.ValueOf[networkingv1.IPAddress](obj)
	ref := address.Spec.ParentRef
	if ref == nil {
		errs = append(errs, field.Required(at, ""))
	} else {
		errs = append(errs, validateParent(ref, at)...)
	}
	if was := kind.ValueOf[networkingv1.IPAddress](old); was != nil {
		same := ref == nil && was.Spec.ParentRef == nil || ref != nil && was.Spec.ParentRef != nil && *ref == *was.Spec.ParentRef
		if !same {
			errs = append(errs, field.Invalid(at, nil, "field is immutable"))
		}
	}
	return errs
}

func validateParent(ref *networkingv1.ParentReference, at *field.Path) (errs field.ErrorList) {
	if ref.Group != "" {
		errs = append(errs, kind.Invalids(at.Child("group"), ref.Group, validation.IsDNS1123Subdomain(ref.Group))...)
	}
	for _, f := range []struct {
		name, value string
		required    bool
	}{{"resource", ref.Resource, true}, {"name", ref.Name, true}, {"namespace", ref.Namespace, false}} {
		switch {
		case f.value != "":
			errs = append(errs, kind.Invalids(at.Child(f.name), f.value, content.IsPathSegmentName(f.value))...)
		case f.required:
			errs = append(errs, field.Required(at.Child(f.name), ""))
		}
	}
	return errs
}
