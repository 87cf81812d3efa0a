package lifecycle

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/resource"
)

// MigrateAnnotation on a CustomResourceDefinition, with the value "true", has
// its objects stored in its storage version whenever some may be stored in
// another, without anybody asking.
const MigrateAnnotation = "anykind.dev/migrate-storage"

// A migration is a StorageVersionMigration that is stored.
type migration struct {
	key, name string
	migrationv1.StorageVersionMigration
}

func (m *migration) is(t migrationv1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(t))
}

func (m *migration) running() bool { return m.is(migrationv1.MigrationRunning) }

// says returns what the status said of the running migration when it was read.
func (m *migration) says() string {
	if c := meta.FindStatusCondition(m.Status.Conditions, string(migrationv1.MigrationRunning)); c != nil {
		return c.Message
	}
	return ""
}

func (m *migration) ended() bool {
	return m.is(migrationv1.MigrationSucceeded) || m.is(migrationv1.MigrationFailed)
}

func (m *migration) resource() schema.GroupResource {
	return schema.GroupResource{Group: m.Spec.Resource.Group, Resource: m.Spec.Resource.Resource}
}

// migrations is the Definition of the kind, or nil.
func (l *Lifecycle) migrations() *resource.Definition {
	return l.Catalog.Set().Lookup(migrationv1.GroupName, "storageversionmigrations")
}

// migrationsOf returns the migrations of a resource, the oldest first.
func (l *Lifecycle) migrationsOf(ctx context.Context, of schema.GroupResource) (out []*migration, err error) {
	d := l.migrations()
	if d == nil {
		return nil, nil
	}
	err = l.pages(ctx, d.StoragePrefix, func(page kv.Page) {
		for i := range page.Records {
			if m := readMigration(page.Records[i].Key, page.Records[i].Value); m != nil && m.resource() == of {
				out = append(out, m)
			}
		}
	})
	slices.SortFunc(out, func(a, b *migration) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.name, b.name))
	})
	return out, err
}

// readMigration returns nil for what cannot be read, which nobody asks for.
func readMigration(key string, value []byte) *migration {
	m := &migration{key: key}
	if json.Unmarshal(value, &m.StorageVersionMigration) != nil {
		return nil
	}
	m.name = m.Name
	return m
}

// seeMigration returns what to do about a migration that has come, has ended or is
// gone. What else is written of it is how far it is, which changes nothing.
func seeMigration(e *kv.Event) []task {
	now, was := readMigration(e.Key, e.Value), readMigration(e.Key, e.Prev)
	switch {
	case now == nil && was == nil:
		return nil
	case now == nil:
		now = was
	case was != nil && was.UID == now.UID && was.ended() == now.ended():
		return nil
	}
	return []task{{do: migrate, key: now.resource().String()}}
}

// seeDefinition returns what to do about a definition that asks for migrations, or
// that says that one is running, which may be over, or may be possible now.
func seeDefinition(p *prefixes, e *kv.Event) []task {
	if !bytes.Contains(e.Value, []byte(MigrateAnnotation)) && !bytes.Contains(e.Value, []byte(definitionRuns)) {
		return nil
	}
	return []task{{do: migrate, key: strings.TrimPrefix(e.Key, p.kinds)}}
}

// setStatus writes conditions of a migration, and the revision that it began at
// if that is known now and was not before.
func (l *Lifecycle) setStatus(ctx context.Context, m *migration, revision string, conditions ...condition) error {
	now := object.Timestamp(l.Now())
	return l.change(ctx, l.migrations(), m.key, string(m.UID), "status", func(t object.Tree) bool {
		changed := setConditions(t, now, conditions...)
		status := t["status"].(object.Tree)
		if was, _ := status["resourceVersion"].(string); was == "" && revision != "" {
			status["resourceVersion"], changed = revision, true
		}
		return changed
	})
}

// A kindDefinition is what a migration needs to know of the
// CustomResourceDefinition of a resource.
type kindDefinition struct {
	*header
	kind       *resource.Definition // CustomResourceDefinition
	definition apiextensionsv1.CustomResourceDefinition
}

// definitionOf returns the CustomResourceDefinition of a resource, or nil for
// one that has none.
func (l *Lifecycle) definitionOf(ctx context.Context, of schema.GroupResource) (*kindDefinition, error) {
	d := l.Catalog.Set().Lookup(apiextensionsv1.GroupName, "customresourcedefinitions")
	if d == nil || of.Group == "" {
		return nil, nil
	}
	h, err := l.read(ctx, d.Key("", of.String()))
	if err != nil || h == nil {
		return nil, err
	}
	k := &kindDefinition{header: h, kind: d}
	return k, json.Unmarshal(h.JSON, &k.definition)
}

// storageVersion of a definition, "" if it has none.
func storageVersion(d *apiextensionsv1.CustomResourceDefinition) string {
	for i := range d.Spec.Versions {
		if d.Spec.Versions[i].Storage {
			return d.Spec.Versions[i].Name
		}
	}
	return ""
}

// definitionRuns is the reason of a definition's condition while it is migrated.
const definitionRuns = "MigrationRunning"

// beginDefinition says in the definition of a resource, if it has one, that it
// is being migrated, and by which generation of it.
func (l *Lifecycle) beginDefinition(ctx context.Context, m *migration) error {
	return l.changeDefinition(ctx, m.resource(), func(t object.Tree) bool {
		return setConditions(t, object.Timestamp(l.Now()), condition{
			kind: string(apiextensionsv1.StorageMigrating), status: true, reason: definitionRuns,
			message: fmt.Sprintf("Migration %s is running", m.name), observedGeneration: object.Generation(t),
		})
	})
}

// endDefinition says that a migration has ended. If it succeeded, and the
// definition is the one that it began with, no object is stored in any version
// but the storage version.
func (l *Lifecycle) endDefinition(ctx context.Context, of schema.GroupResource, succeeded bool) error {
	return l.changeDefinition(ctx, of, func(t object.Tree) bool {
		c := condition{
			kind: string(apiextensionsv1.StorageMigrating), reason: "MigrationFailed", message: "The migration has failed",
			observedGeneration: object.Generation(t),
		}
		if !succeeded {
			return setConditions(t, object.Timestamp(l.Now()), c)
		}
		c.reason = "MigrationSucceeded"
		trimmed := beganWith(t, c.observedGeneration)
		if trimmed {
			c.message = "The migration has succeeded and the stored versions have been updated"
		} else {
			c.message = "The migration has succeeded but the stored versions have not been updated due to a generation mismatch"
		}
		changed := setConditions(t, object.Timestamp(l.Now()), c)
		if trimmed {
			changed = trim(t) || changed
		}
		return changed
	})
}

// abandonDefinition has the definition of a resource no longer say that a migration
// is running, when there is none: it was deleted.
func (l *Lifecycle) abandonDefinition(ctx context.Context, of schema.GroupResource) error {
	k, err := l.definitionOf(ctx, of)
	if err != nil || k == nil {
		return err
	}
	for _, c := range k.definition.Status.Conditions {
		if c.Type == apiextensionsv1.StorageMigrating && c.Status == apiextensionsv1.ConditionTrue {
			return l.endDefinition(ctx, of, false)
		}
	}
	return nil
}

// beganWith reports whether the migration under way began with a generation of a
// definition.
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

// trim makes the storage version the only one in status.storedVersions.
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

// changeDefinition changes the status of the definition of a resource, if it has
// one.
func (l *Lifecycle) changeDefinition(ctx context.Context, of schema.GroupResource, edit func(object.Tree) bool) error {
	k, err := l.definitionOf(ctx, of)
	if err != nil || k == nil {
		return err
	}
	return l.change(ctx, k.kind, k.key, k.UID, "status", edit)
}

// askForMigration makes a migration for a definition that is annotated for it.
// There is one for each generation that needs one, so that one that failed is
// not made again for nothing.
func (l *Lifecycle) askForMigration(ctx context.Context, of schema.GroupResource) error {
	k, err := l.definitionOf(ctx, of)
	if err != nil || k == nil {
		return err
	}
	crd := &k.definition
	stored := crd.Status.StoredVersions
	if crd.Annotations[MigrateAnnotation] != "true" || crd.DeletionTimestamp != nil || l.migrations() == nil ||
		len(stored) == 0 || slices.Equal(stored, []string{storageVersion(crd)}) {
		return nil
	}
	const longest = 230 // of the part of a name of 253 that is the definition's
	name := strings.TrimRight(crd.Name[:min(len(crd.Name), longest)], "-.")
	return l.create(ctx, l.migrations(), "", object.Tree{
		"metadata": object.Tree{
			"name": fmt.Sprintf("%s-%d", name, crd.Generation),
			"ownerReferences": []any{object.Tree{
				"apiVersion": k.APIVersion(), "kind": k.kind.Kind, "name": crd.Name, "uid": string(crd.UID),
			}},
		},
		"spec": object.Tree{"resource": object.Tree{"group": of.Group, "resource": of.Resource}},
	})
}

// The words of the conditions of a migration are those of Kubernetes.

func migrationRuns(message string) condition {
	return condition{kind: string(migrationv1.MigrationRunning), status: true, reason: "MigrationRunning", message: "The migration is running" + message}
}

// migrationEnds are the conditions of a migration that has ended, with failure
// "" if it succeeded.
func migrationEnds(failure string) []condition {
	over := condition{kind: string(migrationv1.MigrationRunning), reason: "MigrationCompleted", message: "Migration completed"}
	if failure != "" {
		return []condition{over, {kind: string(migrationv1.MigrationFailed), status: true, reason: "StorageVersionMigrationFailed", message: failure}}
	}
	return []condition{over, {kind: string(migrationv1.MigrationSucceeded), status: true, reason: "StorageVersionMigrationSucceeded", message: "Migration completed"}}
}

// A kind that is not served yet may be soon.
const kindPatience = time.Minute

// waitsForKind reports for how long a migration still waits for its kind.
func (m *migration) waitsForKind(now time.Time) time.Duration {
	return m.CreationTimestamp.Add(kindPatience).Sub(now)
}

var migratedBy = metav1.Verbs{"update", "patch", "list"} // as Kubernetes asks
