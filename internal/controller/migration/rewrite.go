package migration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

const (
	// rewriteBatch is the number of objects converted together, and rewriters the number of
	// concurrent writes: enough for a store to combine them into one commit.
	rewriteBatch = 256
	rewriters    = 64
	// reportPause is the interval at which the status reports progress.
	reportPause = time.Second
)

// errWithdrawn means that the migration was deleted while it was running.
var errWithdrawn = errors.New("the migration was deleted")

// rewrite rewrites the objects of d that need it, and reports progress in the status of the
// migration. After an error of some objects it continues with the others.
func (c *Controller) rewrite(ctx context.Context, m *migration, d *resource.Definition) error {
	revision, err := c.objects.Backend.Revision(ctx)
	if err != nil {
		return err
	}
	objects, total, err := c.objects.Outdated(ctx, d)
	if err != nil {
		return err
	}
	left := len(objects)
	report := func(failed error) error {
		return c.report(ctx, m, strconv.FormatInt(revision, 10), left, total, failed)
	}
	if err := report(nil); err != nil {
		return err
	}
	var failed error
	reported := c.objects.Now()
	for batch := range slices.Chunk(objects, rewriteBatch) {
		done, err := c.rewriteBatch(ctx, d, batch)
		left -= done
		if controller.IsStale(err) {
			return err
		}
		if err != nil {
			failed = err
		}
		if err != nil && done == 0 {
			break
		}
		if now := c.objects.Now(); now.Sub(reported) >= reportPause {
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

// rewriteBatch rewrites some objects and returns the number of those that are done.
func (c *Controller) rewriteBatch(ctx context.Context, d *resource.Definition, batch []*watchcache.Object) (int, error) {
	ctx = c.objects.Convert(ctx, d, batch)
	var done atomic.Int64
	err := controller.Each(ctx, rewriters, batch, func(o *watchcache.Object) error {
		err := c.objects.Rewrite(ctx, d, o)
		if err == nil {
			done.Add(1)
		}
		return err
	})
	return int(done.Load()), err
}

// report records the progress of a migration. It returns errWithdrawn if the migration was deleted.
func (c *Controller) report(ctx context.Context, m *migration, revision string, left, total int, failed error) error {
	now, err := c.objects.Read(ctx, m.key)
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
	case strings.HasPrefix(said, migrationRuns(message+trouble).Message):
		return nil // unchanged so far
	}
	return c.setStatus(ctx, m, revision, migrationRuns(message))
}
