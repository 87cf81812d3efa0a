// Package storagemigration has the built-in kind of storagemigration.k8s.io,
// StorageVersionMigration.
//
// It knows what one may say and how far it says it is. The migration itself is in
// internal/controller/migration.
package storagemigration

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{storageVersionMigrations()}
}
