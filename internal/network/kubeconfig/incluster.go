package kubeconfig

import (
	"errors"
	"net"
	"os"
	"path/filepath"
)

// InCluster stands in the place of a file. It means the cluster in which this program runs in a pod, as
// the ServiceAccount of that.
const InCluster = "InClusterConfig"

// serviceAccountFolder is where a pod finds the credentials of its ServiceAccount.
const serviceAccountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

var errNotInCluster = errors.New("unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined")

// Open returns how to reach the server that a file names, which has to be there, or that InCluster
// means.
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

// inCluster returns the cluster, and the user whose token is read anew for each request: kubelets renew it.
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
