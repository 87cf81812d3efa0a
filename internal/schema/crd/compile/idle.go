package compile

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
)

// idleAfter is the interval of checks for idle schemas and rules: unused ones are dropped after that
// time, and before twice that time.
const idleAfter = 5 * time.Minute

// DropIdle drops compiled schemas and rules of idle kinds of the catalog, until ctx ends.
func DropIdle(ctx context.Context, catalog *resource.Catalog) {
	ticker := time.NewTicker(idleAfter)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		for d := range catalog.Set().All() {
			for _, v := range d.Versions {
				if s, ok := v.Schema.(versionSchema); ok {
					s.DropIdle()
				}
			}
		}
	}
}
