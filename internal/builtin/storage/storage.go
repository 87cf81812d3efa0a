// Package storage has the built-in kinds of storage.k8s.io.
//
// It validates them. Drivers outside this program create and attach volumes.
package storage

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/anykind/anykind/internal/builtin/kind"
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/object/resource"
)

// Definitions returns the kinds of the group.
func Definitions() []*resource.Definition {
	return []*resource.Definition{
		drivers(), nodes(), capacities(), classes(), attachments(), attributesClasses(),
	}
}

// validateProvisioner validates the provisioner of a class.
func validateProvisioner(c *rule.Check, name string) {
	if name == "" {
		c.Required("")
		return
	}
	name = strings.ToLower(name)
	c.Invalids(name, validation.IsQualifiedName(name))
}

// validateParameters validates the parameters for a provisioner.
func validateParameters(c *rule.Check, parameters map[string]string) {
	const most, mostBytes = 512, 256 << 10
	if len(parameters) > most {
		c.TooLong(most)
		return
	}
	size := 0
	for _, key := range kind.SortedKeys(parameters) {
		if key == "" {
			c.Invalid(key, "field can not be empty.")
		}
		size += len(key) + len(parameters[key])
	}
	if size > mostBytes {
		c.TooLong(mostBytes)
	}
}
