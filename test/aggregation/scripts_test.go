package aggregation

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/test/script"

	"github.com/rogpeppe/go-internal/testscript"
)

var options = newOptions(flag.CommandLine)

// The page "Set up an Extension API Server", and what users do after it.
func TestScripts(t *testing.T) {
	o := *options.script
	o.Commands = options.commands()
	o.Serve = func(env *testscript.Env, dir string) ([]byte, error) {
		f, err := startFront(t.Context(), dir, *options.reference)
		if err != nil {
			return nil, err
		}
		env.Defer(func() {
			if err := f.stop(); err != nil {
				env.T().Log(err)
			}
		})
		example, err := published()
		if err != nil {
			return nil, err
		}
		env.Setenv("EXAMPLE", filepath.Join(example, "artifacts", "example"))
		newStage(t.Context(), env, *options.logs) // which ends before the server does
		return os.ReadFile(f.kubeconfig)
	}
	script.Run(t, "scripts", o)
}
