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

// A stage is what runs behind the server of a script.
type stage struct {
	ctx     context.Context
	address string // of the backend; "" if its Service says where it is
	backend *backend
}

type stageKey struct{}

// newStage gives a script its stage, which ends with it.
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

// commands are what a script has besides those of package script:
//
//	backend certificate DNSNAME
//	    Makes an authority and a certificate for a server of that name: ca.crt, tls.crt and
//	    tls.key. CA_BUNDLE is the authority as an APIService has it, and PORT a free port.
//	backend start TOKENFILE
//	    Starts sample-apiserver with an etcd of its own at PORT, with the certificate, and
//	    returns when it is ready. It is to the server who the token says.
//	backend install
//	    Does all steps of the page at once. Its Service is at an EndpointSlice in the scripts about
//	    endpoints, and elsewhere a name.
//	backend kill
//	    Kills it. Its etcd goes on.
//	backend return
//	    Starts it again, with what it had stored.
//	[!] eventually kubectl ARG...
//	    Runs kubectl until it succeeds, or fails after a !: for what a server learns from others.
//
// ADDRESS is an address of this machine in the scripts about endpoints. The condition [reference]
// holds beside kube-apiserver.
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

// writeKubeconfig writes a file like another one, for somebody with a token.
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
	for deadline := time.After(patience); ; {
		err := ts.Exec(kubectl, args[1:]...)
		if (err != nil) == neg {
			return
		}
		select {
		case <-again.C:
		case <-deadline:
			ts.Fatalf("kubectl did not come to that in %v: %v", patience, err)
		}
	}
}
