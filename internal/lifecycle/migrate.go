package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/watchcache"
)

const (
	// rewriteBatch is how many objects are converted together, and rewriters how
	// many are written at a time: enough for a store to make one commit of them.
	rewriteBatch = 256
	rewriters    = 64
	// reportPause is how often the status of a migration says how far it is.
	reportPause = time.Second
)

// errWithdrawn says that the migration was deleted while it was running.
var errWithdrawn = errors.New("the migration was deleted")

// migrate does what the migrations of a resource ask for, one after the other.
// What is done is where it is stored, so one that was interrupted goes on where
// it was.
func (l *Lifecycle) migrate(ctx context.Context, of schema.GroupResource) error {
	all, err := l.migrationsOf(ctx, of)
	if err != nil {
		return err
	}
	var next *migration
	for _, m := range all {
		switch {
		case m.running() && m.ended(): // whoever ended it did not get any further
			if err := l.endMigration(ctx, m, m.is(migrationv1.MigrationSucceeded)); err != nil {
				return err
			}
		case !m.ended() && (next == nil || m.running() && !next.running()):
			next = m
		}
	}
	if next == nil {
		if err := l.abandonDefinition(ctx, of); err != nil {
			return err
		}
		return l.askForMigration(ctx, of)
	}
	if !next.running() {
		if err := l.beginDefinition(ctx, next); err != nil {
			return err
		}
		if err := l.setStatus(ctx, next, "", migrationRuns("")); err != nil {
			return err
		}
	}
	return l.run(ctx, next)
}

// endMigration ends one whose outcome its status has.
func (l *Lifecycle) endMigration(ctx context.Context, m *migration, succeeded bool) error {
	if err := l.endDefinition(ctx, m.resource(), succeeded); err != nil {
		return err
	}
	return l.setStatus(ctx, m, "", migrationEnds("")[0])
}

func (l *Lifecycle) failMigration(ctx context.Context, m *migration, why string) error {
	if err := l.endDefinition(ctx, m.resource(), false); err != nil {
		return err
	}
	return l.setStatus(ctx, m, "", migrationEnds(why)...)
}

// run rewrites the objects of the resource of a migration that is running.
func (l *Lifecycle) run(ctx context.Context, m *migration) error {
	began := l.unknown.begin()
	for attempt := 0; ; attempt++ {
		if err := l.Refresh(ctx); err != nil {
			return err
		}
		d := l.Catalog.Set().Lookup(m.Spec.Resource.Group, m.Spec.Resource.Resource)
		if d == nil {
			return l.waitForKind(ctx, m, began)
		}
		if i := slices.IndexFunc(migratedBy, func(verb string) bool { return !d.Allows(verb) }); i >= 0 {
			return l.failMigration(ctx, m, fmt.Sprintf("resource %q does not support discovery operations: %v",
				d.GroupResource().WithVersion(d.StorageVersion().Name).String(), migratedBy))
		}
		err := l.rewrite(ctx, m, d)
		switch {
		case err == nil:
			if err := l.endDefinition(ctx, m.resource(), true); err != nil {
				return err
			}
			return l.setStatus(ctx, m, "", migrationEnds("")...)
		case errors.Is(err, errWithdrawn):
			return l.endDefinition(ctx, m.resource(), false)
		case !errors.Is(err, registry.ErrStale) || attempt == staleRetries:
			return err
		}
	}
}

// waitForKind has a migration wait for its kind to be served, for a while.
func (l *Lifecycle) waitForKind(ctx context.Context, m *migration, began int) error {
	left := m.waitsForKind(l.Now())
	if left <= 0 {
		return l.failMigration(ctx, m, "resource does not exist in discovery")
	}
	t := task{do: migrate, key: m.resource().String()}
	l.queue.after(t, left)
	return l.unknown.park(t, began, &unknownError{what: m.resource().String()}, l.queue)
}

// rewrite rewrites the objects of d that need it, and says in the status of the
// migration how far it is. It goes on after an error of some objects, as long as
// there are others that it can rewrite.
func (l *Lifecycle) rewrite(ctx context.Context, m *migration, d *resource.Definition) error {
	revision, err := l.Backend.Revision(ctx)
	if err != nil {
		return err
	}
	objects, total, err := l.Registry.Outdated(ctx, d)
	if err != nil {
		return err
	}
	left := len(objects)
	report := func(failed error) error {
		return l.report(ctx, m, strconv.FormatInt(revision, 10), left, total, failed)
	}
	if err := report(nil); err != nil {
		return err
	}
	var failed error
	reported := l.Now()
	for batch := range slices.Chunk(objects, rewriteBatch) {
		done, err := l.rewriteBatch(ctx, d, batch)
		left -= done
		if errors.Is(err, registry.ErrStale) {
			return err
		}
		if err != nil {
			failed = err
		}
		if err != nil && done == 0 {
			break
		}
		if now := l.Now(); now.Sub(reported) >= reportPause {
			if err := report(nil); err != nil {
				return err
			}
			reported = now
		}
	}
	if failed != nil && ctx.Err() == nil {
		return errors.Join(failed, report(failed))
	}
	return failed
}

// rewriteBatch rewrites some objects and returns how many of them need nothing
// more.
func (l *Lifecycle) rewriteBatch(ctx context.Context, d *resource.Definition, batch []*watchcache.Object) (int, error) {
	// An error comes again, for each of the objects that it is about.
	ctx = l.Registry.Anew(ctx, d)
	_ = l.Registry.Warm(ctx, d, d.StorageVersion(), batch)
	var done atomic.Int64
	err := each(ctx, rewriters, batch, func(o *watchcache.Object) error {
		err := l.Registry.Rewrite(ctx, d, o)
		if err == nil {
			done.Add(1)
		}
		return err
	})
	return int(done.Load()), err
}

// report says how far a migration is, or that it was withdrawn.
func (l *Lifecycle) report(ctx context.Context, m *migration, revision string, left, total int, failed error) error {
	now, err := l.read(ctx, m.key)
	if err != nil {
		return err
	}
	if now == nil || now.UID != string(m.UID) {
		return errWithdrawn
	}
	message := ""
	switch {
	case left > 0:
		message = fmt.Sprintf(", %d/%d objects not yet migrated", left, total)
	case total > 0:
		message = fmt.Sprintf(", %d objects verified migrated", total)
	}
	const trouble = "; transient error: "
	switch said := m.says(); {
	case failed != nil:
		message += fmt.Sprint(trouble, failed)
	case strings.HasPrefix(said, migrationRuns(message+trouble).message):
		return nil // that has not changed yet
	}
	return l.setStatus(ctx, m, revision, migrationRuns(message))
}
