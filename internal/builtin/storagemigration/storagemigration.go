// Package storagemigration has the built-in kind of storagemigration.k8s.io,
// StorageVersionMigration.
//
// It knows what one may say and how far it says it is. The migration itself is in
// internal/controller/migration.
package storagemigration

import (
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema/model"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{storageVersionMigrations()}
}

// marks say of the Go types what only their source does.
func marks() model.Marks {
	return model.Marks{
		"io.k8s.api.storagemigration.v1.StorageVersionMigrationStatus": {"conditions": {List: "map", Keys: []string{"type"}}},
	}
}
