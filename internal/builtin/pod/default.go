package pod

import (
	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// defaultContainer sets the defaults that depend on other fields of a container. The table has
// constants.
func defaultContainer(container map[string]any) {
	if kind.Text(container, "imagePullPolicy") == "" { // or the image need not be parsed
		kind.SetDefault(container, "imagePullPolicy", string(volume.PullPolicy(kind.Text(container, "image"))))
	}
}
