package compile

import (
	"context"
	"time"

	"github.com/anykind/anykind/internal/object/resource"
)

// idleAfter is how long compiled schemas and rules wait for the next write: they are
// dropped when nobody has used them for as long, and before twice as long.
const idleAfter = 5 * time.Minute

// DropIdle drops what was compiled for kinds of the catalog that nobody writes any
// more, until ctx ends.
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
