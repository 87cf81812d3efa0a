// Package node has the built-in kind of node.k8s.io, RuntimeClass.
//
// It knows what one may say. What pods have of it is for admission.
package node

import (
	nodev1 "k8s.io/api/node/v1"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{runtimeClasses()}
}

func runtimeClasses() *resource.Definition {
	return kind.Kind[nodev1.RuntimeClass, nodev1.RuntimeClassList]{
		Definition: resource.Definition{
			Group: nodev1.SchemeGroupVersion.Group, Plural: "runtimeclasses",
			Strategy: resource.Strategy{AllowCreateOnUpdate: true},
		},
		Columns: `
			Handler  string  .handler  ""
			Age
		`,
	}.New()
}
