package app

import "testing"

// etcd is on a port, or, as Kubernetes' own tests start it, on a socket of the machine.
func TestEtcdURL(t *testing.T) {
	for server, want := range map[string]bool{
		"http://127.0.0.1:2379": true, "https://etcd:2379": true, "unix:///tmp/etcd.sock": true, "unixs:///tmp/etcd.sock": true,
		"127.0.0.1:2379": false, "http://": false, "unix://": false, "ftp://etcd": false, "": false,
	} {
		if got := isEtcdURL(server); got != want {
			t.Errorf("%q: %t", server, got)
		}
	}
}
