// Package autoscaling has the built-in kind HorizontalPodAutoscaler. It is served in two versions
// and stored in v2; v1 keeps the fields that it lacks in annotations.
//
// It validates and completes autoscalers. A controller outside this program scales workloads.
package autoscaling

import (
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{horizontalPodAutoscalers()}
}
