package storagemigration

import (
	"strings"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/object/resource"
)

// A StorageVersionMigration requests that all objects of a resource are stored in its storage
// version. Its status has the progress.
func storageVersionMigrations() *resource.Definition {
	return kind.Kind[*migrationv1.StorageVersionMigration, *migrationv1.StorageVersionMigrationList]{
		Definition:  resource.Definition{Group: migrationv1.GroupName, Plural: "storageversionmigrations", Gate: gate.StorageVersionMigrator},
		StatusKeeps: "spec metadata",
		Validate:    validateMigration, ValidateStatus: validateMigrationStatus,
		Columns: `
			Resource  string  resource  "GroupResource to migrate"
			Status    string  state     "Status of the migration"
		`,
		Cells: kind.Cells{
			"resource": func(obj map[string]any) any {
				return schema.GroupResource{Group: kind.Text(obj, "spec", "resource", "group"), Resource: kind.Text(obj, "spec", "resource", "resource")}.String()
			},
			"state": migrationState,
		},
	}.New(kind.Renamed("v1beta1", "k8s.io/api/storagemigration/v1beta1", kind.Life{Introduced: 35, Deprecated: 37, Removed: 40, Replaced: true}).Stored())
}

// migrationState returns the last listed condition that is true.
func migrationState(obj map[string]any) any {
	state := "Unknown"
	for _, c := range kind.ValueOf[migrationv1.StorageVersionMigration](obj).Status.Conditions {
		switch t := migrationv1.MigrationConditionType(c.Type); {
		case c.Status != metav1.ConditionTrue:
		case t == migrationv1.MigrationRunning, t == migrationv1.MigrationFailed, t == migrationv1.MigrationSucceeded:
			state = c.Type
		}
	}
	return state
}

func validateMigration(c *rule.Check, m, old *migrationv1.StorageVersionMigration) {
	c = c.At("spec")
	at, asked := c.At("resource"), m.Spec.Resource
	if asked.Resource == "" {
		at.At("resource").Required("resource is required to be set")
	} else if bad := validation.IsDNS1035Label(asked.Resource); len(bad) > 0 {
		at.At("resource").Invalid(asked.Resource, strings.Join(bad, ","))
	}
	if asked.Group != "" {
		if bad := validation.IsDNS1123Subdomain(asked.Group); len(bad) > 0 {
			at.At("group").Invalid(asked.Group, strings.Join(bad, ","))
		}
	}
	if old != nil {
		c.Immutable(m.Spec, old.Spec)
	}
}

// validateMigrationStatus checks that final conditions and the initial resourceVersion do not
// change.
func validateMigrationStatus(c *rule.Check, m, old *migrationv1.StorageVersionMigration) {
	now, was := &m.Status, &old.Status
	c = c.At("status")
	version, conditions := c.At("resourceVersion"), c.At("conditions")
	if v := now.ResourceVersion; v != "" {
		if _, err := resourceversion.CompareResourceVersion(v, v); err != nil {
			version.Invalid(v, err.Error())
		}
	}
	conditions.Conditions(now.Conditions)
	if was.ResourceVersion != "" {
		version.Immutable(now.ResourceVersion, was.ResourceVersion)
	}
	is := func(s *migrationv1.StorageVersionMigrationStatus, t migrationv1.MigrationConditionType) bool {
		return meta.IsStatusConditionTrue(s.Conditions, string(t))
	}
	if is(now, migrationv1.MigrationSucceeded) && is(now, migrationv1.MigrationFailed) {
		conditions.Invalid(now.Conditions, "Both success and failed conditions cannot be true at the same time")
	}
	if is(was, migrationv1.MigrationSucceeded) && !is(now, migrationv1.MigrationSucceeded) {
		conditions.Invalid(now.Conditions, "Success condition cannot be set to false once it is true")
	}
	if is(was, migrationv1.MigrationFailed) && !is(now, migrationv1.MigrationFailed) {
		conditions.Invalid(now.Conditions, "Failed condition cannot be set to false once it is true")
	}
}
