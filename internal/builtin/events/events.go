// Package events has the kind Event, which is served in two groups: in the one without a
// name and in events.k8s.io. Both are here because they share what is stored.
//
// It knows what an event may be in either, and how one becomes the other. That events
// are deleted after a while is in internal/controller/expiry.
package events

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kind in either group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{coreEvents(), newEvents()}
}
