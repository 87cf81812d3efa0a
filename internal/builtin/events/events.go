// Package events has the kind Event, which is served in the core group and in events.k8s.io. Both
// are here because they share their storage.
//
// It validates and converts events. internal/controller/expiry deletes expired ones.
package events

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kind in both groups.
func Definitions() []*resource.Definition {
	return []*resource.Definition{coreEvents(), newEvents()}
}
