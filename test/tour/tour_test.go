// Package tour has the everyday work with kubectl as tests: the built-in kinds, and operations common
// to every kind.
//
// Each script is one task. Run one with go test -run TestTour/NAME.
package tour

import (
	"flag"
	"testing"

	"github.com/anykind/anykind/test/script"
)

var options = script.Flags(flag.CommandLine)

func TestTour(t *testing.T) { script.Run(t, ".", *options) }
