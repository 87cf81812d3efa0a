package builtin

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

	"github.com/anykind/anykind/internal/resource"
)

// A StorageVersionMigration asks for all objects of a resource to be stored in
// its storage version. Its status says how far that is.
func storageVersionMigrations() *resource.Definition {
	return kind[migrationv1.StorageVersionMigration, migrationv1.StorageVersionMigrationList](resource.Definition{
		Group: migrationv1.GroupName, Plural: "storageversionmigrations", Singular: "storageversionmigration",
		Kind: "StorageVersionMigration", GroupPriority: storageMigrationPriority,
		StoredAs: schema.GroupVersionKind{Group: migrationv1.GroupName, Version: "v1beta1", Kind: "StorageVersionMigration"},
		Validate: validateMigration,
	}, &resource.Version{
		Keep:  keepMigrationStatus,
		Reset: []string{"status"},
		Subresources: []resource.Subresource{{
			Name: "status", Verbs: []string{"get", "patch", "update"}, Keep: keepMigrationSpec, Sets: []string{"status"},
		}},
		Columns: []resource.Column{
			{Name: "Resource", Type: "string", Description: "GroupResource to migrate", Cell: func(obj map[string]any) any {
				return schema.GroupResource{Group: text(obj, "spec", "resource", "group"), Resource: text(obj, "spec", "resource", "resource")}.String()
			}},
			{Name: "Status", Type: "string", Description: "Status of the migration", Cell: func(obj map[string]any) any {
				return migrationState(migrationStatus(obj).Conditions)
			}},
		},
	})
}

// keepMigrationStatus leaves the status to its subresource.
func keepMigrationStatus(obj, old map[string]any) {
	obj["status"] = map[string]any{}
	if old != nil {
		put(obj, "status", old["status"])
	}
}

// keepMigrationSpec leaves all but the status alone.
func keepMigrationSpec(obj, old map[string]any) {
	put(obj, "spec", old["spec"])
	for _, name := range []string{"labels", "annotations", "finalizers", "ownerReferences"} {
		put(child(obj, "metadata"), name, value(old, "metadata", name))
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
	errs := metaFinalizers(obj)
	at := field.NewPath("spec", "resource")
	asked := metav1.GroupResource{Group: text(obj, "spec", "resource", "group"), Resource: text(obj, "spec", "resource", "resource")}
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
	was := metav1.GroupResource{Group: text(old, "spec", "resource", "group"), Resource: text(old, "spec", "resource", "resource")}
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
