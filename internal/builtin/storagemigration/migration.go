package storagemigration

import (
	"encoding/json"
	"strings"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

// A StorageVersionMigration asks for all objects of a resource to be stored in
// its storage version. Its status says how far that is.
func storageVersionMigrations() *resource.Definition {
	return kind.New(resource.Definition{
		Group: migrationv1.GroupName, Plural: "storageversionmigrations", Singular: "storageversionmigration",
		Kind:     "StorageVersionMigration",
		StoredAs: schema.GroupVersionKind{Group: migrationv1.GroupName, Version: "v1beta1", Kind: "StorageVersionMigration"},
		Strategy: resource.Strategy{Validate: resource.Looking(validateMigration)},
	}, kind.VersionOf[migrationv1.StorageVersionMigration, migrationv1.StorageVersionMigrationList](&resource.Version{
		Name:        "v1",
		Revert:      resource.Changing(revertMigrationStatus),
		ResetFields: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"}, Revert: resource.Changing(revertMigrationSpec), Fields: []string{"status"},
		}},
		Columns: []resource.Column{
			{Name: "Resource", Type: "string", Description: "GroupResource to migrate", Cell: func(obj map[string]any) any {
				return schema.GroupResource{Group: kind.Text(obj, "spec", "resource", "group"), Resource: kind.Text(obj, "spec", "resource", "resource")}.String()
			}},
			{Name: "Status", Type: "string", Description: "Status of the migration", Cell: func(obj map[string]any) any {
				return migrationState(migrationStatus(obj).Conditions)
			}},
		},
	}))
}

// revertMigrationStatus leaves the status to its subresource.
func revertMigrationStatus(obj, old map[string]any) {
	obj["status"] = map[string]any{}
	if old != nil {
		kind.Put(obj, "status", old["status"])
	}
}

// revertMigrationSpec leaves all but the status alone.
func revertMigrationSpec(obj, old map[string]any) {
	kind.Put(obj, "spec", old["spec"])
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		kind.Put(kind.Child(obj, "metadata"), name, kind.Value(old, "metadata", name))
	}
}

// migrationState is the last condition that is true, in the order they are
// listed.
func migrationState(conditions []metav1.Condition) string {
	state := "Unknown"
	for _, c := range conditions {
		switch t := migrationv1.MigrationConditionType(c.Type); {
		case c.Status != metav1.ConditionTrue:
		case t == migrationv1.MigrationRunning, t == migrationv1.MigrationFailed, t == migrationv1.MigrationSucceeded:
			state = c.Type
		}
	}
	return state
}

func migrationStatus(obj map[string]any) (status migrationv1.StorageVersionMigrationStatus) {
	data, err := json.Marshal(obj["status"])
	if err != nil || json.Unmarshal(data, &status) != nil {
		return migrationv1.StorageVersionMigrationStatus{} // the schema has refused it
	}
	return status
}

func validateMigration(obj, old map[string]any) field.ErrorList {
	errs := kind.MetaFinalizers(obj)
	at := field.NewPath("spec", "resource")
	asked := metav1.GroupResource{Group: kind.Text(obj, "spec", "resource", "group"), Resource: kind.Text(obj, "spec", "resource", "resource")}
	if asked.Resource == "" {
		errs = append(errs, field.Required(at.Child("resource"), "resource is required to be set"))
	} else if bad := validation.IsDNS1035Label(asked.Resource); len(bad) > 0 {
		errs = append(errs, field.Invalid(at.Child("resource"), asked.Resource, strings.Join(bad, ",")))
	}
	if asked.Group != "" {
		if bad := validation.IsDNS1123Subdomain(asked.Group); len(bad) > 0 {
			errs = append(errs, field.Invalid(at.Child("group"), asked.Group, strings.Join(bad, ",")))
		}
	}
	if old == nil {
		return errs
	}
	was := metav1.GroupResource{Group: kind.Text(old, "spec", "resource", "group"), Resource: kind.Text(old, "spec", "resource", "resource")}
	if was != asked {
		errs = append(errs, field.Invalid(field.NewPath("spec"), struct{ Resource metav1.GroupResource }{asked}, "field is immutable"))
	}
	return append(errs, validateMigrationStatus(migrationStatus(obj), migrationStatus(old))...)
}

// validateMigrationStatus checks that a migration that has ended stays so, and
// that what it began with does not change.
func validateMigrationStatus(now, was migrationv1.StorageVersionMigrationStatus) (errs field.ErrorList) {
	at := field.NewPath("status")
	if v := now.ResourceVersion; v != "" {
		if _, err := resourceversion.CompareResourceVersion(v, v); err != nil {
			errs = append(errs, field.Invalid(at.Child("resourceVersion"), v, err.Error()))
		}
	}
	errs = append(errs, metavalidation.ValidateConditions(now.Conditions, at.Child("conditions"))...)
	if was.ResourceVersion != "" && was.ResourceVersion != now.ResourceVersion {
		errs = append(errs, field.Invalid(at.Child("resourceVersion"), now.ResourceVersion, "field is immutable"))
	}
	is := func(s *migrationv1.StorageVersionMigrationStatus, t migrationv1.MigrationConditionType) bool {
		return meta.IsStatusConditionTrue(s.Conditions, string(t))
	}
	wrong := func(detail string) {
		errs = append(errs, field.Invalid(at.Child("conditions"), now.Conditions, detail))
	}
	if is(&now, migrationv1.MigrationSucceeded) && is(&now, migrationv1.MigrationFailed) {
		wrong("Both success and failed conditions cannot be true at the same time")
	}
	if is(&was, migrationv1.MigrationSucceeded) && !is(&now, migrationv1.MigrationSucceeded) {
		wrong("Success condition cannot be set to false once it is true")
	}
	if is(&was, migrationv1.MigrationFailed) && !is(&now, migrationv1.MigrationFailed) {
		wrong("Failed condition cannot be set to false once it is true")
	}
	return errs
}
