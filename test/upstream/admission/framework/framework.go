// Package framework replaces the package by which Kubernetes' own tests prepare a store: it returns
// the etcd of the runner.
package framework

import (
	"os"
	"path"

	"github.com/google/uuid"
	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// SharedEtcd returns a unique prefix in the etcd of all tests.
func SharedEtcd() *storagebackend.Config {
	c := storagebackend.NewDefaultConfig(path.Join(uuid.New().String(), "registry"), nil)
	c.Transport.ServerList = []string{os.Getenv("KUBE_INTEGRATION_ETCD_URL")}
	return c
}

// EtcdMain runs the tests of a package.
func EtcdMain(tests func() int) { os.Exit(tests()) }

// DefaultTestServerFlags are flags of most servers.
func DefaultTestServerFlags() []string {
	return []string{"--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount"}
}
