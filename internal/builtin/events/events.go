// Package events has the kind Event, which is served in two groups: in the one without a
// name and in events.k8s.io. Both are here because they share what is stored.
//
// It knows what an event may be in either, and how one becomes the other. That events
// are deleted after a while is in internal/controller/expiry.
package events

import (
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/schema/model"
)

// Definitions returns the kind in either group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{coreEvents(), newEvents()}
}

// marks say of the Go types what only their source does.
func marks() model.Marks {
	const core = "io.k8s.api.core.v1."
	return model.Marks{
		core + "Event": {
			"reportingComponent": {Optional: true},
			"reportingInstance":  {Optional: true},
		},
		"io.k8s.api.events.v1.Event": {"metadata": {Optional: true}},
	}
}
