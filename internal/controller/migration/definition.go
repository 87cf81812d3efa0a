package migration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
)

// definitionOf returns the CustomResourceDefinition of a resource, or nil without one.
func (c *Controller) definitionOf(ctx context.Context, of schema.GroupResource) (*controller.Definition, error) {
	if of.Group == "" {
		return nil, nil
	}
	return c.objects.Definition(ctx, of.String())
}

// storageVersion returns the storage version of a definition, or "".
func storageVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Storage {
			return d.Spec.Versions[i].Name
		}
	}
	return ""
}

// definitionRuns is the reason of the definition's condition during a migration.
const definitionRuns = "MigrationRunning"

// beginDefinition records in the definition of a resource, if it has one, that a migration is
// running, and the generation of the definition.
func (c *Controller) beginDefinition(ctx context.Context, m *migration) error {
	return c.changeDefinition(ctx, m.resource(), func(t object.Tree) bool {
		return controller.SetConditions(t, object.Timestamp(c.objects.Now()), controller.Condition{
			Type: string(apiextensionsv1.StorageMigrating), Status: true, Reason: definitionRuns,
			Message: fmt.Sprintf("Migration %s is running", m.name), ObservedGeneration: object.Generation(t),
		})
	})
}

// endDefinition records the end of a migration. If it succeeded and the definition has not changed
// since the start, all objects are in the storage version.
func (c *Controller) endDefinition(ctx context.Context, of schema.GroupResource, succeeded bool) error {
	return c.changeDefinition(ctx, of, func(t object.Tree) bool {
		condition := controller.Condition{
			Type: string(apiextensionsv1.StorageMigrating), Reason: "MigrationFailed", Message: "The migration has failed",
			ObservedGeneration: object.Generation(t),
		}
		if !succeeded {
			return controller.SetConditions(t, object.Timestamp(c.objects.Now()), condition)
		}
		condition.Reason = "MigrationSucceeded"
		trimmed := beganWith(t, condition.ObservedGeneration)
		if trimmed {
			condition.Message = "The migration has succeeded and the stored versions have been updated"
		} else {
			condition.Message = "The migration has succeeded but the stored versions have not been updated due to a generation mismatch"
		}
		changed := controller.SetConditions(t, object.Timestamp(c.objects.Now()), condition)
		if trimmed {
			changed = trim(t) || changed
		}
		return changed
	})
}

// abandonDefinition removes the running condition of a definition whose migration was deleted.
func (c *Controller) abandonDefinition(ctx context.Context, of schema.GroupResource) error {
	k, err := c.definitionOf(ctx, of)
	if err != nil || k == nil {
		return err
	}
	for _, found := range k.Object.Status.Conditions {
		if found.Type == apiextensionsv1.StorageMigrating && found.Status == apiextensionsv1.ConditionTrue {
			return c.endDefinition(ctx, of, false)
		}
	}
	return nil
}

// beganWith reports whether the running migration began with that generation of the definition.
func beganWith(t object.Tree, generation int64) bool {
	status, _ := t["status"].(object.Tree)
	conditions, _ := status["conditions"].([]any)
	for _, v := range conditions {
		if c, _ := v.(object.Tree); c["type"] == string(apiextensionsv1.StorageMigrating) {
			return c["observedGeneration"] == generation
		}
	}
	return false
}

// trim sets status.storedVersions to the storage version only.
func trim(t object.Tree) (changed bool) {
	spec, _ := t["spec"].(object.Tree)
	status := t["status"].(object.Tree)
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if v, _ := v.(object.Tree); v["storage"] == true {
			only := []any{v["name"]}
			changed = !object.Equal(status["storedVersions"], only)
			status["storedVersions"] = only
		}
	}
	return changed
}

// changeDefinition updates the status of the definition of a resource, if it has one.
func (c *Controller) changeDefinition(ctx context.Context, of schema.GroupResource, edit func(object.Tree) bool) error {
	k, err := c.definitionOf(ctx, of)
	if err != nil || k == nil {
		return err
	}
	return c.objects.Change(ctx, k.Kind, k.Key, k.UID, "status", edit)
}

// askForMigration creates a migration for an annotated definition, one for each generation that
// needs it. So a failed migration is not created again.
func (c *Controller) askForMigration(ctx context.Context, of schema.GroupResource) error {
	k, err := c.definitionOf(ctx, of)
	if err != nil || k == nil {
		return err
	}
	crd := &k.Object
	stored := crd.Status.StoredVersions
	if crd.Annotations[MigrateAnnotation] != "true" || crd.DeletionTimestamp != nil || c.migrations() == nil ||
		len(stored) == 0 || slices.Equal(stored, []string{storageVersion(crd)}) {
		return nil
	}
	const longest = 230 // of the definition's part of a name of 253 characters
	name := strings.TrimRight(crd.Name[:min(len(crd.Name), longest)], "-.")
	return c.objects.Create(ctx, c.migrations(), "", object.Tree{
		"metadata": object.Tree{
			"name": fmt.Sprintf("%s-%d", name, crd.Generation),
			"ownerReferences": []any{object.Tree{
				"apiVersion": k.APIVersion(), "kind": k.Kind.Kind, "name": crd.Name, "uid": string(crd.UID),
			}},
		},
		"spec": object.Tree{"resource": object.Tree{"group": of.Group, "resource": of.Resource}},
	})
}
