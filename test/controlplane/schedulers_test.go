package controlplane

import (
	"context"
	"flag"
	"os"
	"testing"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/script"

	"github.com/rogpeppe/go-internal/testscript"
)

var (
	options = script.Flags(flag.CommandLine)
	logsDir = flag.String("logs", "", "`folder` for the logs of the programs")
)

// The page "Configure Multiple Schedulers".
func TestSchedulers(t *testing.T) {
	scripts(t, "schedulers", *options, func(env *testscript.Env, dir string) ([]byte, error) {
		return serve(t.Context(), env, dir)
	})
}

// A cluster with all beta gates: its server elects the leaders of the other components.
func TestBetaGates(t *testing.T) {
	scripts(t, "beta", *options, func(env *testscript.Env, dir string) ([]byte, error) {
		return serve(t.Context(), env, dir, "--feature-gates=AllBeta=true", "--runtime-config=api/beta=true")
	})
}

// scripts runs the scripts of a folder, with the commands above. serve starts the server of each.
func scripts(t *testing.T, dir string, o script.Options, serve func(env *testscript.Env, dir string) ([]byte, error)) {
	t.Helper()
	o.Commands = commands()
	o.Serve = func(env *testscript.Env, data string) ([]byte, error) {
		kubeconfig, err := serve(env, data)
		if err == nil {
			newStage(t.Context(), env, *logsDir) // it ends before the server does
		}
		return kubeconfig, err
	}
	script.Run(t, dir, o)
}

// serve starts an anykind for one script.
func serve(ctx context.Context, env *testscript.Env, dir string, flags ...string) ([]byte, error) {
	path, err := anykind()
	if err != nil {
		return nil, err
	}
	server, err := process.Start(ctx, path, dir, "", flags...)
	if err != nil {
		return nil, err
	}
	env.Defer(func() {
		if err := server.Stop(); err != nil {
			env.T().Log(err)
		}
	})
	return os.ReadFile(server.Kubeconfig)
}
