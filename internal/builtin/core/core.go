// Package core has the built-in kinds of the group without a name, but for events, which
// share what is stored with those of another group (internal/builtin/events).
//
// It knows what one may be and what becomes of it when it is written. What controllers
// do with it later is in internal/controller.
package core

import (
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{
		namespaces(), configMaps(), secrets(), serviceAccounts(), services(), endpoints(),
		podTemplates(), replicationControllers(),
		persistentVolumes(), persistentVolumeClaims(),
		nodeKind().New(), resourceQuotas(), limitRanges(),
	}
}
