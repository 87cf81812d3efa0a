package flags

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/anykind/anykind/internal/object/gate"
)

// logIdleGates warns of gates that were changed and do not change the server, with a line for each reason.
func logIdleGates(log *slog.Logger, gates *gate.Set) {
	of := map[string][]gate.Name{}
	for _, name := range slices.Sorted(slices.Values(gates.Idle())) {
		why := gate.IdleReason(name)
		of[why] = append(of[why], name)
	}
	for _, why := range slices.Sorted(maps.Keys(of)) {
		log.Warn("feature gates without effect", "why", why, "gates", of[why])
	}
}
