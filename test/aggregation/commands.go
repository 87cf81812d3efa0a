package aggregation

import (
	"context"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/anykind/anykind/test/program"
	"github.com/anykind/anykind/test/script"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// A stage is the backend of a script.
type stage struct {
	ctx     context.Context
	address string // of the backend; "" if its Service has an ExternalName
	backend *backend
}

type stageKey struct{}

// newStage gives a script its stage, and stops the backend at the end of the script.
func newStage(ctx context.Context, env *testscript.Env, address, logs string) {
	ctx, cancel := context.WithCancel(ctx)
	s := &stage{ctx: ctx, address: address}
	env.Values[stageKey{}] = s
	env.Defer(func() {
		if s.backend != nil {
			if err := s.backend.end(logs); err != nil {
				env.T().Log(err)
			}
		}
		cancel()
	})
}

// commands are the commands of a script besides those of package script:
//
//	backend certificate DNSNAME
//	\tCreates a CA and a certificate for a server of that name: ca.crt, tls.crt and tls.key.
//	\tCA_BUNDLE is the CA as an APIService has it, and PORT a free port.
//	backend start TOKENFILE
//	\tStarts sample-apiserver with an etcd of its own at PORT, with the certificate, and
//	\treturns once it is ready. The token is its identity at the server in front.
//	backend install
//	\tDoes all steps of the page at once. Its Service has an EndpointSlice in the scripts
//	\tabout endpoints, and elsewhere an ExternalName.
//	backend kill
//	\tKills the server. Its etcd goes on.
//	backend return
//	\tStarts the server again, with its data.
//	[!] eventually kubectl ARG...
//	\tRuns kubectl until it succeeds, or fails after a !: for asynchronous effects.
//
// ADDRESS is an address of this machine in the scripts about endpoints. The condition [reference]
// holds for kube-apiserver.
func (o *aggregationOptions) commands() map[string]script.Command {
	return map[string]script.Command{"backend": o.backend, "eventually": eventually}
}

func (o *aggregationOptions) backend(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value(stageKey{}).(*stage)
	switch {
	case neg || len(args) == 0:
	case args[0] == "certificate" && len(args) == 2:
		b, err := newBackend(ts.MkAbs(".backend"), args[1])
		ts.Check(err)
		s.backend = b
		for _, name := range []string{"ca.crt", "tls.crt", "tls.key"} {
			data, err := os.ReadFile(filepath.Join(b.dir, name))
			ts.Check(err)
			ts.Check(os.WriteFile(ts.MkAbs(name), data, 0o600))
			if name == "ca.crt" {
				ts.Setenv("CA_BUNDLE", base64.StdEncoding.EncodeToString(data))
			}
		}
		ts.Setenv("PORT", b.port)
		return
	case args[0] == "start" && len(args) == 2:
		ts.Check(writeKubeconfig(s.backend.config, ts.Getenv("KUBECONFIG"), strings.TrimSpace(ts.ReadFile(args[1]))))
		ts.Check(s.backend.start(s.ctx))
		return
	case args[0] == "install" && len(args) == 1:
		b, err := install(s.ctx, ts.MkAbs(".backend"), ts.Getenv("KUBECONFIG"), s.address)
		s.backend = b
		ts.Check(err)
		ts.Setenv("PORT", b.port)
		return
	case args[0] == "kill" && len(args) == 1:
		ts.Check(s.backend.kill(*o.logs))
		return
	case args[0] == "return" && len(args) == 1:
		ts.Check(s.backend.start(s.ctx))
		return
	}
	ts.Fatalf("usage: backend certificate DNSNAME, start TOKENFILE, install, kill or return")
}

// writeKubeconfig writes a kubeconfig like another one, with a token as its user.
func writeKubeconfig(file, like, token string) error {
	config, err := clientcmd.LoadFromFile(like)
	if err != nil {
		return err
	}
	for name := range config.AuthInfos {
		config.AuthInfos[name] = &api.AuthInfo{Token: token}
	}
	return clientcmd.WriteToFile(*config, file)
}

func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || args[0] != "kubectl" {
		ts.Fatalf("usage: eventually kubectl ARG...")
	}
	kubectl, err := program.Kubectl()
	ts.Check(err)
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for deadline := time.After(waitTimeout); ; {
		err := ts.Exec(kubectl, args[1:]...)
		if (err != nil) == neg {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			ts.Fatalf("kubectl did not come to that in %v: %v", waitTimeout, err)
		}
	}
}
