// Package docs holds the Kubernetes documentation of custom resources as tests:
// one script for each section, in which real kubectl does what the page tells a
// reader to do, and sees what the page says it will see.
//
// A script is named after its section and begins by saying what it proves. Run
// one with go test -run TestDocs/NAME.
package docs

import (
	"flag"
	"testing"

	"github.com/anykind/anykind/test/script"
)

var options = script.Flags(flag.CommandLine)

func TestDocs(t *testing.T) { script.Run(t, ".", *options) }
