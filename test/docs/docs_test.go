// Package docs holds the Kubernetes documentation of custom resources as tests: one script for each
// section, in which real kubectl follows the instructions of the page and gets the results that the
// page describes.
//
// A script is named after its section and begins with a summary. Run one with go test -run
// TestDocs/NAME.
package docs

import (
	"flag"
	"testing"

	"github.com/anykind/anykind/test/script"
)

var options = script.Flags(flag.CommandLine)

func TestDocs(t *testing.T) { script.Run(t, ".", *options) }
