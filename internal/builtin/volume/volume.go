// Package volume has the rules of volumes: those of pods, persistent volumes, claims and
// their templates.
//
// It knows types, and no kind.
package volume

import (
	"github.com/anykind/anykind/internal/builtin/rule"
)

// Rules are the rules and defaults in Go of all types of volumes.
var Rules = rule.All()
