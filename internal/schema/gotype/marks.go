package gotype

import (
	"slices"
	"strings"
)

// Marks are the markers in the source of Go types, by the name of the type's model and the name of a
// field; "" is the type itself.
type Marks map[string]map[string]Mark

// HasPackage reports whether a type of a package has markers.
func (m Marks) HasPackage(pkg string) bool {
	prefix := NameOf(pkg, "")
	for name := range m {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// A Mark has the markers of one type or field.
type Mark struct {
	List     string   // x-kubernetes-list-type
	Keys     []string // x-kubernetes-list-map-keys
	Map      string   // x-kubernetes-map-type
	Optional bool     // not required although it is always written
	Required bool     // required although it may be left out
	Enum     []string // all values
	Elements []string // all values of an element of a list or map
	Default  any
	Union    *Union // x-kubernetes-unions
	Kind     string // the apiVersion of a kind that is part of other types
	Doc      string // where the type has no documentation to ask
}

// A Union is a type with a discriminator field that selects one of some other fields.
type Union struct {
	Discriminator string
	Fields        map[string]string // values of Discriminator
}

// NameOf returns the name under which a type of a package is published. It is the result of OpenAPIModelName of
// the type. A call of that method would link it for a thousand types, half a megabyte.
func NameOf(pkg, name string) string {
	path := strings.Split(pkg, "/")
	host := strings.Split(path[0], ".")
	slices.Reverse(host)
	return strings.Join(append(append(host, path[1:]...), name), ".")
}
