package server

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Programs are the files that are run.
type Programs struct{ Anykind, KubeAPIServer, Etcd string }

// Sides are the two servers that are compared.
type Sides struct{ Anykind, Reference Kind }

// AsShipped compares what each is when it is started with nothing else: anykind over
// a file of its own, and kube-apiserver over etcd, which it needs.
func (p Programs) AsShipped() Sides {
	return Sides{Anykind: Kind{Name: "anykind", serve: p.anykind}, Reference: p.reference()}
}

// OverEtcd compares both over the same kind of etcd.
func (p Programs) OverEtcd() Sides {
	return Sides{Anykind: Kind{Name: "anykind over etcd", etcd: p.Etcd, serve: p.anykind}, Reference: p.reference()}
}

// reference is Kubernetes' own server, with the store that it needs. All that is not
// said here is as it is by default.
func (p Programs) reference() Kind {
	return Kind{Name: "kube-apiserver over etcd", etcd: p.Etcd, serve: p.kubeAPIServer}
}

// A Kind is one of the servers compared: processes that serve what one etcd keeps, or
// one process by itself.
type Kind struct {
	Name  string
	etcd  string // the program, "" for none
	serve func(place) command
}

// A place is where a process serves.
type place struct {
	dir     string // of its own
	address string
	store   string // URL of etcd, "" for none
	*credentials
}

// commands returns what is to be run to serve some addresses with the data in a
// folder. Each must accept connections before the next is started.
func (k Kind) commands(dir string, addresses []string, c *credentials) (list []command) {
	store := ""
	if k.etcd != "" {
		e := etcd(k.etcd, filepath.Join(dir, "etcd"))
		list, store = append(list, e), "http://"+e.listens
	}
	for i, address := range addresses {
		one := k.serve(place{filepath.Join(dir, strconv.Itoa(i)), address, store, c})
		one.name = fmt.Sprintf("%s-%d", filepath.Base(one.program), i)
		list = append(list, one)
	}
	return list
}

// Etcd is the name of its process in a Usage.
const Etcd = "etcd"

// etcd is one member, spoken to without TLS.
func etcd(program, dir string) command {
	clients, err1 := freeAddress()
	peers, err2 := freeAddress()
	if err1 != nil || err2 != nil {
		clients, peers = "127.0.0.1:2379", "127.0.0.1:2380" // and if those are not free, it does not start, and says so
	}
	return command{Etcd, program, []string{
		"--data-dir", dir,
		"--listen-client-urls", "http://" + clients, "--advertise-client-urls", "http://" + clients,
		"--listen-peer-urls", "http://" + peers, "--initial-advertise-peer-urls", "http://" + peers,
		"--initial-cluster", "default=http://" + peers,
		// A million objects do not fit into the 2 GB that it has by default.
		"--quota-backend-bytes", fmt.Sprint(8 << 30),
	}, clients}
}

// anykind is this repository's server.
func (p Programs) anykind(at place) command {
	args := []string{
		"serve", "--data-dir", filepath.Join(at.dir, "data"),
		"--bind-address", "127.0.0.1", "--secure-port", port(at.address),
		"--tls-cert-file", at.cert, "--tls-private-key-file", at.key,
		"--token-auth-file", at.tokens,
	}
	if at.store != "" {
		args = append(args, "--etcd-servers", at.store)
	}
	return command{program: p.Anykind, args: args, listens: at.address}
}

func (p Programs) kubeAPIServer(at place) command {
	return command{program: p.KubeAPIServer, args: []string{
		"--etcd-servers", at.store,
		"--bind-address", "127.0.0.1", "--secure-port", port(at.address), "--cert-dir", filepath.Join(at.dir, "certs"),
		"--tls-cert-file", at.cert, "--tls-private-key-file", at.key,
		"--token-auth-file", at.tokens, "--authorization-mode", "RBAC",
		"--service-account-key-file", at.serviceSigner, "--service-account-signing-key-file", at.serviceSigner,
		"--service-account-issuer", "https://localhost", "--service-cluster-ip-range", "10.0.0.0/24",
	}, listens: at.address}
}
