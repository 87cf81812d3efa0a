package integrations

import (
	"flag"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/script"
)

var options = script.Flags(flag.CommandLine)

// Besides the commands of package script, a script has
//
//	install helm3|helm4
//	    Puts anykind, and a published Helm as helm, into the folder bin, the first one in PATH.
func TestIntegrations(t *testing.T) {
	o := *options
	o.Commands = map[string]script.Command{"install": install}
	script.Run(t, ".", o)
}

func install(ts *testscript.TestScript, neg bool, args []string) {
	helms := map[string]func() (string, error){"helm3": program.Helm3, "helm4": program.Helm4}
	if neg || len(args) != 1 || helms[args[0]] == nil {
		ts.Fatalf("usage: install helm3|helm4")
	}
	script.Install(ts, "anykind", program.Anykind)
	script.Install(ts, "helm", helms[args[0]])
}
