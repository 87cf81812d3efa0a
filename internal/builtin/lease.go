package builtin

import (
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// prepareLease drops the fields of coordinated leader election, which is off,
// unless the stored lease has them already.
func prepareLease(obj, old map[string]any) {
	spec := tree(obj, "spec")
	for _, name := range []string{"strategy", "preferredHolder"} {
		if value(old, "spec", name) == nil {
			delete(spec, name)
		}
	}
}

func validateLease(obj, _ map[string]any) field.ErrorList {
	var errs field.ErrorList
	spec, at := tree(obj, "spec"), field.NewPath("spec")
	if n, ok := spec["leaseDurationSeconds"].(int64); ok && n <= 0 {
		errs = append(errs, field.Invalid(at.Child("leaseDurationSeconds"), n, "must be greater than 0"))
	}
	if n, ok := spec["leaseTransitions"].(int64); ok && n < 0 {
		errs = append(errs, field.Invalid(at.Child("leaseTransitions"), n, "must be greater than or equal to 0"))
	}
	if strategy, ok := spec["strategy"].(string); ok {
		errs = append(errs, validateStrategy(strategy, at.Child("strategy", "strategy"))...)
	}
	if text(spec, "preferredHolder") != "" && text(spec, "strategy") == "" {
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
