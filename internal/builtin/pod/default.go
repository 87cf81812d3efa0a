package pod

import (
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// defaultContainer fills in what depends on other fields of a container. Constants are in
// the table.
func defaultContainer(container map[string]any) {
	kind.SetDefault(container, "imagePullPolicy", string(volume.PullPolicy(kind.Text(container, "image"))))
}
