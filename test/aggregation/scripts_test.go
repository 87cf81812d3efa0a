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
func TestScripts(t *testing.T) { run(t, "scripts", "") }

// Without a kube-proxy, the front connects to endpoints, not to cluster IPs. In that mode
// kube-apiserver does not support a Service with an ExternalName.
func TestEndpoints(t *testing.T) {
	address := ownAddress()
	if address == "" {
		t.Skip("this machine has no address that an EndpointSlice may have")
	}
	run(t, "endpoints", address, "--enable-aggregator-routing=true")
}

// run runs the scripts of a folder, each with a front with additional flags, and a backend at an
// address.
func run(t *testing.T, dir, address string, flags ...string) {
	o := *options.script
	o.Commands = options.commands()
	o.Conditions = map[string]bool{"reference": *options.reference}
	o.Serve = func(env *testscript.Env, dir string) ([]byte, error) {
		f, err := startFront(t.Context(), dir, *options.reference, flags...)
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
		env.Setenv("ADDRESS", address)
		newStage(t.Context(), env, address, *options.logs) // it ends before the server does
		return os.ReadFile(f.kubeconfig)
	}
	script.Run(t, dir, o)
}
