package server

import (
	"fmt"
	"path/filepath"
)

// Anykind is this repository's server.
type Anykind struct{ Program string }

func (a Anykind) Name() string { return "anykind" }

func (a Anykind) commands(dir, address string, c *credentials) []command {
	return []command{{a.Program, []string{
		"serve", "--data-dir", filepath.Join(dir, "data"),
		"--bind-address", "127.0.0.1", "--secure-port", port(address),
		"--tls-cert-file", c.cert, "--tls-private-key-file", c.key,
		"--token-auth-file", c.tokens,
	}, address}}
}

// Reference is Kubernetes' own server, with the store that it needs. All that is
// not said here is as it is by default.
type Reference struct{ APIServer, Etcd string }

func (r Reference) Name() string { return "kube-apiserver + etcd" }

func (r Reference) commands(dir, address string, c *credentials) []command {
	clients, err1 := freeAddress()
	peers, err2 := freeAddress()
	if err1 != nil || err2 != nil {
		clients, peers = "127.0.0.1:2379", "127.0.0.1:2380" // and if those are not free, it does not start, and says so
	}
	return []command{
		{r.Etcd, []string{
			"--data-dir", filepath.Join(dir, "etcd"),
			"--listen-client-urls", "http://" + clients, "--advertise-client-urls", "http://" + clients,
			"--listen-peer-urls", "http://" + peers, "--initial-advertise-peer-urls", "http://" + peers,
			"--initial-cluster", "default=http://" + peers,
			// A million objects do not fit into the 2 GB that it has by default.
			"--quota-backend-bytes", fmt.Sprint(8 << 30),
		}, clients},
		{r.APIServer, []string{
			"--etcd-servers", "http://" + clients,
			"--bind-address", "127.0.0.1", "--secure-port", port(address), "--cert-dir", filepath.Join(dir, "certs"),
			"--tls-cert-file", c.cert, "--tls-private-key-file", c.key,
			"--token-auth-file", c.tokens, "--authorization-mode", "RBAC",
			"--service-account-key-file", c.serviceSigner, "--service-account-signing-key-file", c.serviceSigner,
			"--service-account-issuer", "https://localhost", "--service-cluster-ip-range", "10.0.0.0/24",
		}, address},
	}
}
