// Package storagemigration has the built-in kind StorageVersionMigration of
// storagemigration.k8s.io.
//
// It validates migrations and their status. internal/controller/migration runs them.
package storagemigration

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{storageVersionMigrations()}
}
