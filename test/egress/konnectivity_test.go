package egress

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// waitTimeout limits the wait for an asynchronous effect.
const waitTimeout = 30 * time.Second

// A konnectivity is the published Konnectivity server with its agents.
type konnectivity struct {
	mode      string // of the server: "grpc" over a Unix socket, "http-connect" over TLS
	config    string // the file for --egress-selector-config-file
	authority *authority
	args      []string // of the server
	agentPort string
	adminPort string

	server *running
	agents []*running
	number int // number of agents so far
}

// newKonnectivity returns one without processes. The selections are the egress selections that use it.
func newKonnectivity(t *testing.T, mode string, selections ...string) *konnectivity {
	t.Helper()
	// The path of a Unix socket is limited.
	dir, err := os.MkdirTemp("", "egress")
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	k := &konnectivity{mode: mode, authority: newAuthority(t)}
	ports, err := freePorts(4)
	must(t, err)
	k.agentPort, k.adminPort = ports[1], ports[2]
	cert, key := k.authority.issue(t, "konnectivity-server")
	k.args = []string{
		"--mode=" + mode, "--agent-port=" + ports[1], "--admin-port=" + ports[2], "--health-port=" + ports[3],
		"--agent-bind-address=127.0.0.1", "--health-bind-address=127.0.0.1",
		"--cluster-cert=" + cert, "--cluster-key=" + key, "--cluster-ca-cert=" + k.authority.file,
	}
	var connection string
	switch mode {
	case "grpc":
		socket := filepath.Join(dir, "konnectivity-server.socket")
		k.args = append(k.args, "--uds-name="+socket, "--server-port=0")
		connection = fmt.Sprintf("{proxyProtocol: GRPC, transport: {uds: {udsName: %q}}}", socket)
	case "http-connect":
		k.args = append(k.args, "--server-port="+ports[0], "--server-bind-address=127.0.0.1",
			"--server-cert="+cert, "--server-key="+key, "--server-ca-cert="+k.authority.file)
		clientCert, clientKey := k.authority.issue(t, "kube-apiserver")
		connection = fmt.Sprintf("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://127.0.0.1:%s', tlsConfig: {caBundle: %q, clientCert: %q, clientKey: %q}}}}",
			ports[0], k.authority.file, clientCert, clientKey)
	}
	var list strings.Builder
	for _, name := range selections {
		fmt.Fprintf(&list, "- {name: %s, connection: %s}\n", name, connection)
	}
	k.config = k.authority.put(t, "egress.yaml", []byte("apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections:\n"+list.String()))
	t.Cleanup(func() {
		for _, r := range append(k.agents, k.server) {
			if r != nil {
				r.kill()
			}
		}
	})
	return k
}

// startServer starts the server, and waits until it listens. Running agents reconnect.
func (k *konnectivity) startServer(t *testing.T) {
	t.Helper()
	path, err := konnectivityServer()
	must(t, err)
	k.server, err = start(context.WithoutCancel(t.Context()), path, k.args...)
	must(t, err)
	k.await(t, "") // any number
}

// startAgent starts one more agent, and waits until the server counts all running ones.
func (k *konnectivity) startAgent(t *testing.T) {
	t.Helper()
	cert, key := k.authority.issue(t, fmt.Sprintf("konnectivity-agent-%d", k.number))
	k.agents = append(k.agents, k.agent(t, "--ca-cert="+k.authority.file, "--agent-cert="+cert, "--agent-key="+key))
	k.awaitAgents(t)
}

// agent starts an agent without waiting for it. The args set its authentication and that of the
// server.
func (k *konnectivity) agent(t *testing.T, args ...string) *running {
	t.Helper()
	path, err := konnectivityAgent()
	must(t, err)
	ports, err := freePorts(2)
	must(t, err)
	k.number++
	r, err := start(context.WithoutCancel(t.Context()), path, append(args,
		"--proxy-server-host=127.0.0.1", "--proxy-server-port="+k.agentPort,
		"--health-server-port="+ports[0], "--admin-server-port="+ports[1], "--health-server-host=127.0.0.1", "--admin-bind-address=127.0.0.1",
		fmt.Sprintf("--agent-id=agent-%d", k.number), "--sync-interval=100ms", "--sync-interval-cap=200ms", "--probe-interval=100ms", "--sync-forever")...)
	must(t, err)
	return r
}

// killAgent kills the oldest agent, and waits until the server has removed it.
func (k *konnectivity) killAgent(t *testing.T) {
	t.Helper()
	k.agents[0].kill()
	k.agents = k.agents[1:]
	k.awaitAgents(t)
}

// restartServer kills the server, and starts it again.
func (k *konnectivity) restartServer(t *testing.T) {
	t.Helper()
	k.server.kill()
	k.startServer(t)
	k.awaitAgents(t)
}

func (k *konnectivity) awaitAgents(t *testing.T) {
	t.Helper()
	k.await(t, fmt.Sprintf("konnectivity_network_proxy_server_ready_backend_connections %d\n", len(k.agents)))
}

// await waits until the metrics of the server contain a text.
func (k *konnectivity) await(t *testing.T, want string) {
	t.Helper()
	eventually(t, "konnectivity-server", func() error {
		select {
		case <-k.server.ended:
			t.Fatal(ended(k.server, "konnectivity-server"))
		default:
		}
		answer, err := http.Get("http://127.0.0.1:" + k.adminPort + "/metrics")
		if err != nil {
			return err
		}
		data, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err == nil && !strings.Contains(string(data), want) {
			err = fmt.Errorf("its metrics do not have %q:\n%s\nit wrote\n%s", want, data, k.server)
		}
		return err
	})
}
