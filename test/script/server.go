package script

import (
	"os"
	"path/filepath"

	"github.com/anykind/anykind"

	"github.com/rogpeppe/go-internal/testscript"
)

// server starts the server of one script and returns the kubeconfig of its
// administrator.
func (o Options) server(env *testscript.Env) ([]byte, error) {
	if o.Kubeconfig != "" {
		return os.ReadFile(o.Kubeconfig)
	}
	dir := ""
	if o.Keep || o.Serve != nil {
		dir = filepath.Join(env.WorkDir, "anykind-data")
	}
	if o.Serve != nil {
		return o.Serve(env, dir)
	}
	server, err := anykind.Start(o.ctx, anykind.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	env.Defer(func() {
		if err := server.Close(); err != nil {
			env.T().Log("stopping the server:", err)
		}
	})
	config := server.Kubeconfig()
	if o.Keep {
		err = os.WriteFile(filepath.Join(dir, "admin.kubeconfig"), config, 0o600)
	}
	return config, err
}
