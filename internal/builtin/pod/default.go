package pod

import (
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// defaultContainer sets the defaults that depend on other fields of a container. The table has
// constants.
func defaultContainer(container map[string]any) {
	kind.SetDefault(container, "imagePullPolicy", string(volume.PullPolicy(kind.Text(container, "image"))))
}
