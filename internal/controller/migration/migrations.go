package migration

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
)

// A migration is a stored StorageVersionMigration.
type migration struct {
	key, name string
	migrationv1.StorageVersionMigration
}

func (m *migration) is(t migrationv1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(t))
}

func (m *migration) running() bool { return m.is(migrationv1.MigrationRunning) }

// says returns the message of the running condition.
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

// migrations returns the Definition of the kind, or nil.
func (c *Controller) migrations() *resource.Definition {
	return c.objects.Lookup(migrationv1.GroupName, "storageversionmigrations")
}

// migrationsOf returns the migrations of a resource, oldest first.
func (c *Controller) migrationsOf(ctx context.Context, of schema.GroupResource) (out []*migration, err error) {
	d := c.migrations()
	if d == nil {
		return nil, nil
	}
	err = c.objects.Pages(ctx, d.StoragePrefix, func(page kv.Page) {
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

// readMigration decodes a migration. It returns nil for an unreadable one.
func readMigration(key string, value []byte) *migration {
	m := &migration{key: key}
	if json.Unmarshal(value, &m.StorageVersionMigration) != nil {
		return nil
	}
	m.name = m.Name
	return m
}

// setStatus writes conditions of a migration, and the revision of its start if not yet set.
func (c *Controller) setStatus(ctx context.Context, m *migration, revision string, conditions ...controller.Condition) error {
	now := object.Timestamp(c.objects.Now())
	return c.objects.Change(ctx, c.migrations(), m.key, string(m.UID), "status", func(t object.Tree) bool {
		changed := controller.SetConditions(t, now, conditions...)
		status := t["status"].(object.Tree)
		if was, _ := status["resourceVersion"].(string); was == "" && revision != "" {
			status["resourceVersion"], changed = revision, true
		}
		return changed
	})
}

// Reasons and messages of conditions are those of Kubernetes.

func migrationRuns(message string) controller.Condition {
	return controller.Condition{Type: string(migrationv1.MigrationRunning), Status: true, Reason: "MigrationRunning", Message: "The migration is running" + message}
}

// migrationEnds returns the conditions of an ended migration. failure is "" on success.
func migrationEnds(failure string) []controller.Condition {
	over := controller.Condition{Type: string(migrationv1.MigrationRunning), Reason: "MigrationCompleted", Message: "Migration completed"}
	if failure != "" {
		return []controller.Condition{over, {Type: string(migrationv1.MigrationFailed), Status: true, Reason: "StorageVersionMigrationFailed", Message: failure}}
	}
	return []controller.Condition{over, {Type: string(migrationv1.MigrationSucceeded), Status: true, Reason: "StorageVersionMigrationSucceeded", Message: "Migration completed"}}
}

// servedTimeout is the time to wait for a kind that is not served yet.
const servedTimeout = time.Minute

// waitsForKind returns how long the migration continues to wait for its kind.
func (m *migration) waitsForKind(now time.Time) time.Duration {
	return m.CreationTimestamp.Add(servedTimeout).Sub(now)
}

var migratedBy = metav1.Verbs{"update", "patch", "list"} // the verbs that Kubernetes requires
