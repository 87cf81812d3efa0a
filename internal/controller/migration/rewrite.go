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
	// rewriteBatch is how many objects are converted together, and rewriters how
	// many are written at a time: enough for a store to make one commit of them.
	rewriteBatch = 256
	rewriters    = 64
	// reportPause is how often the status of a migration says how far it is.
	reportPause = time.Second
)

// errWithdrawn says that the migration was deleted while it was running.
var errWithdrawn = errors.New("the migration was deleted")

// rewrite rewrites the objects of d that need it, and says in the status of the
// migration how far it is. It goes on after an error of some objects, as long as
// there are others that it can rewrite.
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

// rewriteBatch rewrites some objects and returns how many of them need nothing
// more.
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

// report says how far a migration is, or that it was withdrawn.
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
		return nil // that has not changed yet
	}
	return c.setStatus(ctx, m, revision, migrationRuns(message))
}
