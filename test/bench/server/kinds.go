package server

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// Programs are the paths of the servers' programs.
type Programs struct{ Anykind, KubeAPIServer, Etcd string }

// Sides are the two servers of a comparison.
type Sides struct{ Anykind, Reference Kind }

// AsShipped compares each server in its minimal setup: anykind with a file, and kube-apiserver with
// etcd, which it needs.
func (p Programs) AsShipped() Sides {
	return Sides{Anykind: Kind{Name: "anykind", serve: p.anykind}, Reference: p.reference()}
}

// OverEtcd compares both with the same kind of etcd.
func (p Programs) OverEtcd() Sides {
	return Sides{Anykind: Kind{Name: "anykind over etcd", etcd: p.Etcd, serve: p.anykind}, Reference: p.reference()}
}

// reference is kube-apiserver with its etcd. All flags that are not listed have their defaults.
func (p Programs) reference() Kind {
	return Kind{Name: "kube-apiserver over etcd", etcd: p.Etcd, serve: p.kubeAPIServer}
}

// A Kind is one server of a comparison: processes over one etcd, or one process by itself.
type Kind struct {
	Name  string
	etcd  string // the program, "" for none
	serve func(place) command
	// beside starts what the server needs besides, and returns its end. May be nil.
	beside func(dir string) (end func() error, err error)
}

// A place is the address and the data of a process.
type place struct {
	dir     string // of its own
	address string
	store   string // URL of etcd, "" for none
	*credentials
}

// commands returns the processes that serve the addresses with the data in a folder. Each must accept
// connections before the next one starts.
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

// Etcd is the name of the etcd process in a Usage.
const Etcd = "etcd"

// etcd is one member, without TLS.
func etcd(program, dir string) command {
	clients, err1 := freeAddress()
	peers, err2 := freeAddress()
	if err1 != nil || err2 != nil {
		clients, peers = "127.0.0.1:2379", "127.0.0.1:2380" // if these ports are in use, etcd fails
	}
	return command{Etcd, program, []string{
		"--data-dir", dir,
		"--listen-client-urls", "http://" + clients, "--advertise-client-urls", "http://" + clients,
		"--listen-peer-urls", "http://" + peers, "--initial-advertise-peer-urls", "http://" + peers,
		"--initial-cluster", "default=http://" + peers,
		// A million objects exceed etcd's default quota of 2 GB.
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
