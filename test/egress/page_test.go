package egress

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/process"

	"k8s.io/client-go/tools/clientcmd"
)

// The page "Set up Konnectivity service": its files are applied, the certificate of the server is
// created as described there, and the agents authenticate with tokens, for which the server creates
// TokenReviews. The token of another ServiceAccount is rejected.
func TestPage(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	k := newKonnectivity(t, "grpc", "cluster")
	dir := t.TempDir()
	path, err := anykind()
	must(t, err)
	s, err := process.Start(context.WithoutCancel(t.Context()), path, dir, "", "--in-memory", "--egress-selector-config-file="+k.config)
	must(t, err)
	t.Cleanup(func() { s.Kill() })
	a := newAPI(t, s.Kubeconfig, s.PID())
	pki, conf := filepath.Join(dir, "pki"), filepath.Join(dir, "konnectivity-server.conf")
	ctl, err := kubectl()
	must(t, err)
	objects, err := filepath.Abs("testdata/konnectivity")
	must(t, err)
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		c.Env = append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "KUBECTL="+ctl, "PKI="+pki, "CONF="+conf, "OBJECTS="+objects)
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", c, err, said)
		}
		return string(said)
	}
	applied := run("sh", filepath.Join(objects, "set-up.sh"))
	for _, want := range []string{
		"pod/konnectivity-server created", "daemonset.apps/konnectivity-agent created",
		"clusterrolebinding.rbac.authorization.k8s.io/system:konnectivity-server created", "serviceaccount/konnectivity-agent created",
	} {
		if !strings.Contains(applied, want) {
			t.Errorf("no %q in\n%s", want, applied)
		}
	}
	if who := run(ctl, "--kubeconfig", conf, "auth", "whoami"); !strings.Contains(who, "system:konnectivity-server") {
		t.Errorf("the server is\n%s", who)
	}
	k.args = slices.DeleteFunc(k.args, func(arg string) bool { return strings.HasPrefix(arg, "--cluster-") })
	serving := filepath.Join(pki, "serving.pem")
	k.args = append(k.args, "--cluster-cert="+serving, "--cluster-key="+serving, "--kubeconfig="+conf,
		"--agent-namespace=kube-system", "--agent-service-account=konnectivity-agent", "--authentication-audience=system:konnectivity-server")
	k.startServer(t)

	h := startHook(t, k.authority, "hook.default.svc")
	a.apply(behind("hook", "hook.only-the-agent.test", h.port, k.authority.CertPEM()))
	token := func(account string) string {
		file := filepath.Join(dir, account+".token")
		said := run(ctl, "create", "token", account, "-n", "kube-system", "--audience=system:konnectivity-server")
		must(t, os.WriteFile(file, []byte(strings.TrimSpace(said)), 0o600))
		return file
	}
	proof := func(account string) []string {
		return []string{"--ca-cert=" + filepath.Join(pki, "ca.crt"), "--service-account-token-path=" + token(account)}
	}
	refused := k.agent(t, proof("default")...)
	defer refused.kill()
	eventually(t, "the agent of another account is refused", func() error {
		const want = `incoming request from \"default\" service account. Expected \"konnectivity-agent\"`
		if !strings.Contains(k.server.String(), want) && !strings.Contains(k.server.String(), strings.ReplaceAll(want, `\`, "")) {
			return fmt.Errorf("konnectivity-server wrote\n%s", k.server)
		}
		return nil
	})
	if err := a.ask("hook"); err == nil || !strings.Contains(err.Error(), "No agent available") {
		t.Errorf("without an agent that may: %v", err)
	}
	k.agents = append(k.agents, k.agent(t, proof("konnectivity-agent")...))
	k.awaitAgents(t)
	must(t, a.ask("hook"))
	if h.asked.Load() == 0 {
		t.Error("the webhook was not called")
	}
	config, err := clientcmd.LoadFromFile(conf)
	must(t, err)
	if len(config.AuthInfos["system:konnectivity-server"].ClientKeyData) == 0 {
		t.Errorf("the kubeconfig file has no key: %v", config)
	}
}

// The connection to etcd may use a tunnel, too.
func TestEtcd(t *testing.T) {
	t.Parallel()
	k := newKonnectivity(t, "grpc", "etcd")
	k.startServer(t)
	k.startAgent(t)
	path, err := etcd()
	must(t, err)
	ports, err := freePorts(2)
	must(t, err)
	at, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	r, err := start(context.WithoutCancel(t.Context()), path, "--data-dir", t.TempDir(), "--log-level=error", "--listen-client-urls", at, "--advertise-client-urls", at,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer)
	must(t, err)
	t.Cleanup(r.kill)
	program, err := anykind()
	must(t, err)
	s, err := process.Start(context.WithoutCancel(t.Context()), program, t.TempDir(), "",
		"--egress-selector-config-file="+k.config, "--etcd-servers=http://etcd.only-the-agent.test:"+ports[0])
	must(t, err)
	t.Cleanup(s.Kill)
	a := newAPI(t, s.Kubeconfig, s.PID())
	a.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: kept, namespace: default}")
	k.restartServer(t)
	eventually(t, "the store is found again", func() error {
		_, err := a.raw("/api/v1/namespaces/default/secrets/kept")
		return err
	})
}
