package script

import (
	"os"

	"github.com/anykind/anykind"

	"github.com/rogpeppe/go-internal/testscript"
)

// server starts the server of one script and returns the kubeconfig of its
// administrator.
func (o Options) server(env *testscript.Env) ([]byte, error) {
	if o.Kubeconfig != "" {
		return os.ReadFile(o.Kubeconfig)
	}
	server, err := anykind.Start(o.ctx, anykind.Options{})
	if err != nil {
		return nil, err
	}
	env.Defer(func() {
		if err := server.Close(); err != nil {
			env.T().Log("stopping the server:", err)
		}
	})
	return server.Kubeconfig(), nil
}
