package limitranger

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
)

// annotation lists the values that the plugin has set.
const annotation = "kubernetes.io/limit-ranger"

// fill sets the default requests and limits of a LimitRange in the containers of a pod, and lists
// them in an annotation.
func fill(a *registry.Admission, l *corev1.LimitRange) {
	var messages []string
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		for _, list := range [...]struct{ field, what string }{{"containers", "container"}, {"initContainers", "init container"}} {
			for _, c := range kind.List(a.Object, "spec", list.field) {
				container, ok := c.(object.Tree)
				if !ok {
					continue
				}
				of := list.what + " " + kind.Text(container, "name")
				messages = append(messages, set(container, "requests", item.DefaultRequest, " request for "+of)...)
				messages = append(messages, set(container, "limits", item.Default, " limit for "+of)...)
			}
		}
	}
	if len(messages) > 0 {
		kind.Child(object.Metadata(a.Object), "annotations")[annotation] = "LimitRanger plugin set: " + strings.Join(messages, "; ")
		a.Extended = true
	}
}

// set sets the quantities that a container leaves empty, and describes those for the annotation.
func set(container object.Tree, field string, to corev1.ResourceList, of string) []string {
	var names []string
	for name, quantity := range to {
		if _, present := kind.Tree(container, "resources", field)[string(name)]; !present {
			kind.Child(kind.Child(container, "resources"), field)[string(name)] = quantity.String()
			names = append(names, string(name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{strings.Join(names, ", ") + of}
}
