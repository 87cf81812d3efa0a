package pod

import (
	"github.com/anykind/anykind/internal/builtin/rule"
	"github.com/anykind/anykind/internal/builtin/volume"
)

// Rules are the rules and defaults in Go of all types of a template.
var Rules = rule.All(
	volume.Rules,
	containerRules,
	specRules,
)
