package dra

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// admins check admin access, which shares devices that others use. A label of the namespace enables
// it.
type admins struct {
	namespaces *resource.Definition
	access     access
}

func (a admins) validateClaim(c *rule.Check, claim, old *resourcev1.ResourceClaim) {
	if old == nil {
		a.allow(c, asksForAdmin(c, &claim.Spec))
	}
	validateClaim(c, claim, old)
}

func (a admins) validateTemplate(c *rule.Check, template, old *resourcev1.ResourceClaimTemplate) {
	if old == nil {
		a.allow(c, asksForAdmin(c, &template.Spec.Spec))
	}
	validateTemplate(c, template, old)
}

func (a admins) validateClaimStatus(c *rule.Check, claim, old *resourcev1.ResourceClaim) {
	if hasAdmin(c, old) == nil {
		a.allow(c, hasAdmin(c, claim))
	}
	if c.Gates.On(gate.DRAResourceClaimGranularStatusAuthorization) {
		a.access.validate(c, claim, old)
	}
	validateClaimStatus(c, claim, old)
}

// asksForAdmin returns the path of a request for admin access, or nil.
func asksForAdmin(c *rule.Check, spec *resourcev1.ResourceClaimSpec) *rule.Check {
	for i, r := range spec.Devices.Requests {
		if r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess {
			return c.At("spec", "devices", "requests", i, "adminAccess")
		}
	}
	return nil
}

// hasAdmin returns the path of an allocation with admin access, or nil.
func hasAdmin(c *rule.Check, claim *resourcev1.ResourceClaim) *rule.Check {
	if claim.Status.Allocation == nil {
		return nil
	}
	for i, r := range claim.Status.Allocation.Devices.Results {
		if r.AdminAccess != nil && *r.AdminAccess {
			return c.At("status", "allocation", "devices", "results", i, "adminAccess")
		}
	}
	return nil
}

// allow adds an error at a path, if not nil, unless the namespace enables admin access.
func (a admins) allow(c, at *rule.Check) {
	if at == nil {
		return
	}
	namespace, err := c.Objects.Get(c, a.namespaces, "", c.Namespace)
	switch {
	case err != nil:
		at.Add(field.InternalError(at.Path(), fmt.Errorf("could not retrieve namespace to verify admin access: %w", err)))
	case kind.Text(namespace, "metadata", "labels", resourcev1.DRAAdminNamespaceLabelKey) != "true":
		at.Forbidden("admin access to devices requires the `" + resourcev1.DRAAdminNamespaceLabelKey + ": true` label on the containing namespace")
	}
}
