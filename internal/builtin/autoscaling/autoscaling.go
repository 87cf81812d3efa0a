// Package autoscaling has the built-in kind of the group autoscaling,
// HorizontalPodAutoscaler. It is served in two versions and stored in v2; what v1 has no
// fields for is in annotations there.
//
// It knows what one may be and what becomes of it when it is written. Scaling is done by a
// controller that is no part of this program.
package autoscaling

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{horizontalPodAutoscalers()}
}
