package kubeconfig

import (
	"errors"
	"net"
	"os"
	"path/filepath"
)

// InCluster stands for the in-cluster configuration, in place of a file: the server of the
// cluster, with the pod's ServiceAccount.
const InCluster = "InClusterConfig"

// serviceAccountFolder has the credentials of the ServiceAccount in a pod.
const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

var errNotInCluster = errors.New("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined")

// Open returns the Config of a file, which must exist, or the one that InCluster stands for.
func Open(file string) (*Config, error) {
	if file == InCluster {
		c, u, err := inCluster(serviceAccountFolder)
		if err != nil {
			return nil, err
		}
		return newConfig(&c, &u)
	}
	if _, err := os.Stat(file); err != nil {
		return nil, err
	}
	return Find(Options{Files: []string{file}})
}

// inCluster returns the cluster and the user. Its token is read for each request: kubelets rotate
// it.
func inCluster(folder string) (cluster, user, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return cluster{}, user{}, errNotInCluster
	}
	token := filepath.Join(folder, "token")
	if _, err := os.Stat(token); err != nil {
		return cluster{}, user{}, err
	}
	c := cluster{Server: "https://" + net.JoinHostPort(host, port), CAFile: filepath.Join(folder, "ca.crt")}
	return c, user{TokenFile: token}, nil
}
