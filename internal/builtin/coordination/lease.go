package coordination

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

func leases() *resource.Definition {
	return kind.New(resource.Definition{
		Group: coordinationv1.GroupName, Plural: "leases", Singular: "lease", Kind: "Lease",
		Namespaced: true, GroupPriority: kind.CoordinationPriority,
		Strategy: resource.Strategy{
			AllowCreateOnUpdate: true,
			Prepare:             resource.Changing(prepareLease),
			Validate:            resource.Looking(validateLease),
		},
	}, kind.VersionOf[coordinationv1.Lease, coordinationv1.LeaseList](&resource.Version{Name: "v1", Columns: []resource.Column{
		{
			Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"],
			Cell: func(obj map[string]any) any { return kind.Text(obj, "spec", "holderIdentity") },
		},
		kind.AgeColumn(),
	}}, nil))
}

// prepareLease drops the fields of coordinated leader election, which is off,
// unless the stored lease has them already.
func prepareLease(obj, old map[string]any) {
	spec := kind.Tree(obj, "spec")
	for _, name := range []string{"strategy", "preferredHolder"} {
		if kind.Value(old, "spec", name) == nil {
			delete(spec, name)
		}
	}
}

func validateLease(obj, _ map[string]any) field.ErrorList {
	var errs field.ErrorList
	spec, at := kind.Tree(obj, "spec"), field.NewPath("spec")
	if n, ok := spec["leaseDurationSeconds"].(int64); ok && n <= 0 {
		errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), n, "must be greater than 0"))
	}
	if n, ok := spec["leaseTransitions"].(int64); ok && n < 0 {
		errs = append(errs, field.Invalid(at.Child("leaseTransitions"), n, "must be greater than or equal to 0"))
	}
	if strategy, ok := spec["strategy"].(string); ok {
		errs = append(errs, validateStrategy(strategy, at.Child("strategy", "strategy"))...)
	}
	if kind.Text(spec, "preferredHolder") != "" && kind.Text(spec, "strategy") == "" {
		errs = append(errs, field.Forbidden(at.Child("preferredHolder"), "may only be specified if `strategy` is defined"))
	}
	return errs
}

func validateStrategy(strategy string, at *field.Path) field.ErrorList {
	if !strings.Contains(strategy, "/") {
		if strategy == string(coordinationv1.OldestEmulationVersion) {
			return nil
		}
		return field.ErrorList{field.NotSupported(at, strategy, []coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion})}
	}
	var errs field.ErrorList
	for _, msg := range validation.IsQualifiedName(strategy) {
		errs = append(errs, field.Invalid(at, strategy, msg))
	}
	return errs
}
