package controller

import (
	"fmt"
	"slices"
	"strings"
)

// Select returns the controllers that names enable, like the flag --controllers of
// kube-controller-manager: "*" is every controller, "foo" enables one, and "-foo" disables one. The
// first entry for a controller wins. "*" applies to controllers without an entry, but not to those
// that are off by default. Nil is the same as "*".
func Select(all []Descriptor, names []string) ([]Descriptor, error) {
	if names == nil {
		names = []string{"*"}
	}
	for _, name := range names {
		if name == "*" {
			continue
		}
		name = strings.TrimPrefix(name, "-")
		if !slices.ContainsFunc(all, func(d Descriptor) bool { return d.is(name) }) {
			return nil, fmt.Errorf("%q is not in the list of known controllers", name)
		}
	}
	var selected []Descriptor
	for _, d := range all {
		if d.enabled(names) {
			selected = append(selected, d)
		}
	}
	return selected, nil
}

// is reports whether a name is that of the controller.
func (d *Descriptor) is(name string) bool {
	return name == d.Name || name == d.Alias && name != ""
}

func (d *Descriptor) enabled(names []string) bool {
	for _, name := range names {
		if without, off := strings.CutPrefix(name, "-"); d.is(without) {
			return !off
		}
	}
	return !d.Off && slices.Contains(names, "*")
}
