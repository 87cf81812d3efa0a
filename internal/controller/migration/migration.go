// Package migration rewrites the objects of a resource in its storage version, if a
// StorageVersionMigration or an annotation of the definition asks for it.
//
// It shows its progress in the status of the migration and of the definition.
// internal/offline/migration prints that status.
package migration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/controller"
)

// Name is the name of the controller.
const Name = "storage-version-migrator-controller"

// MigrateAnnotation is an annotation of CustomResourceDefinitions. With the value "true", objects
// are migrated automatically whenever some may be in another version than the storage version.
const MigrateAnnotation = "anykind.dev/migrate-storage"

// A Controller migrates stored objects. The key of its tasks is a resource, as in PLURAL.GROUP.
type Controller struct {
	objects           *controller.Objects
	queue             *controller.Queue
	migrated, defined string // key prefixes of migrations and definitions
}

// New returns the controller.
func New(o *controller.Objects, q *controller.Queue) controller.Controller {
	return &Controller{
		objects: o, queue: q,
		migrated: o.Prefix(migrationv1.GroupName, "storageversionmigrations"),
		defined:  o.DefinitionPrefix(),
	}
}

// Keys returns the key prefixes of migrations and definitions.
func (c *Controller) Keys() []string { return []string{c.migrated, c.defined} }

// See queues the resource of a new migration, of an annotated definition, and of anything that may
// unblock a migration.
func (c *Controller) See(e *controller.Event) {
	if name, ok := strings.CutPrefix(e.Key, c.defined); ok {
		if asksForMigration(e.Value) {
			c.queue.Add(taskOf(name))
		}
		return
	}
	c.seeMigration(e)
}

func taskOf(resource string) controller.Task { return controller.Task{Key: resource} }

// seeMigration queues a migration that is new, has ended or was deleted. Other writes only record
// progress.
func (c *Controller) seeMigration(e *controller.Event) {
	now, was := readMigration(e.Key, e.Value), readMigration(e.Key, e.Prev)
	switch {
	case now == nil && was == nil:
		return
	case now == nil:
		now = was
	case was != nil && was.UID == now.UID && was.ended() == now.ended():
		return
	}
	c.queue.Add(taskOf(now.resource().String()))
}

// asksForMigration reports whether a definition may need the controller: it has the annotation, or
// the condition of a running migration.
func asksForMigration(value []byte) bool {
	return bytes.Contains(value, []byte(MigrateAnnotation)) || bytes.Contains(value, []byte(definitionRuns))
}

// Do runs the migrations of a resource in order. The progress is in the store, so an interrupted
// migration continues.
func (c *Controller) Do(ctx context.Context, t controller.Task) error {
	of := schema.ParseGroupResource(t.Key)
	all, err := c.migrationsOf(ctx, of)
	if err != nil {
		return err
	}
	var next *migration
	for _, m := range all {
		switch {
		case m.running() && m.ended(): // a server stopped after it wrote the end of the migration
			if err := c.endMigration(ctx, m, m.is(migrationv1.MigrationSucceeded)); err != nil {
				return err
			}
		case !m.ended() && (next == nil || m.running() && !next.running()):
			next = m
		}
	}
	if next == nil {
		if err := c.abandonDefinition(ctx, of); err != nil {
			return err
		}
		return c.askForMigration(ctx, of)
	}
	if !next.running() {
		if err := c.beginDefinition(ctx, next); err != nil {
			return err
		}
		if err := c.setStatus(ctx, next, "", migrationRuns("")); err != nil {
			return err
		}
	}
	return c.run(ctx, next)
}

// endMigration finishes a migration whose status has the outcome.
func (c *Controller) endMigration(ctx context.Context, m *migration, succeeded bool) error {
	if err := c.endDefinition(ctx, m.resource(), succeeded); err != nil {
		return err
	}
	return c.setStatus(ctx, m, "", migrationEnds("")[0])
}

func (c *Controller) failMigration(ctx context.Context, m *migration, why string) error {
	if err := c.endDefinition(ctx, m.resource(), false); err != nil {
		return err
	}
	return c.setStatus(ctx, m, "", migrationEnds(why)...)
}

// run rewrites the objects of the resource of a running migration.
func (c *Controller) run(ctx context.Context, m *migration) error {
	for attempt := 0; ; attempt++ {
		if err := c.objects.Refresh(ctx); err != nil {
			return err
		}
		d := c.objects.Lookup(m.Spec.Resource.Group, m.Spec.Resource.Resource)
		if d == nil {
			return c.waitForKind(ctx, m)
		}
		if i := slices.IndexFunc(migratedBy, func(verb string) bool { return !d.Allows(verb) }); i >= 0 {
			return c.failMigration(ctx, m, fmt.Sprintf("resource %q does not support discovery operations: %v",
				d.GroupResource().WithVersion(d.StorageVersion().Name).String(), migratedBy))
		}
		err := c.rewrite(ctx, m, d)
		switch {
		case err == nil:
			if err := c.endDefinition(ctx, m.resource(), true); err != nil {
				return err
			}
			return c.setStatus(ctx, m, "", migrationEnds("")...)
		case errors.Is(err, errWithdrawn):
			return c.endDefinition(ctx, m.resource(), false)
		case !controller.IsStale(err) || attempt == controller.StaleRetries:
			return err
		}
	}
}

// waitForKind waits for the kind of a migration to be served, for a limited time.
func (c *Controller) waitForKind(ctx context.Context, m *migration) error {
	left := m.waitsForKind(c.objects.Now())
	if left <= 0 {
		return c.failMigration(ctx, m, "resource does not exist in discovery")
	}
	t := taskOf(m.resource().String())
	c.queue.After(t, left)
	return &controller.UnknownError{What: t.Key}
}
