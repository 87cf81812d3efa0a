// Package plugin has the page "Extend kubectl with plugins" of the Kubernetes documentation as tests:
// real kubectl follows the instructions of the page, with plugins of a few lines and with anykind.
//
// A script begins with a summary. Run one with go test -run TestPlugin/NAME.
package plugin

import (
	"flag"
	"testing"

	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/script"
)

var options = script.Flags(flag.CommandLine)

func TestPlugin(t *testing.T) {
	// The scripts link to the program.
	if _, err := program.Anykind(); err != nil {
		t.Fatal(err)
	}
	script.Run(t, ".", *options)
}
