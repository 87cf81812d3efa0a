package controlplane

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/anykind/anykind/test/process"
	"github.com/anykind/anykind/test/program"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

var reference = flag.Bool("reference", false, "run kube-apiserver with etcd instead of anykind, to compare the logs of the programs")

// startReference starts a kube-apiserver with the CAs and users of an anykind with its data in a
// folder, so that all programs find the same files.
func startReference(ctx context.Context, t *testing.T, path, dir string) {
	t.Helper()
	kubeAPIServer, err := program.KubeAPIServer()
	must(t, err)
	etcd, err := program.Etcd()
	must(t, err)
	// A first start creates the CAs.
	server, err := process.Start(ctx, path, dir, "")
	must(t, err)
	must(t, server.Stop())
	theirs, pki := filepath.Join(dir, "reference"), filepath.Join(dir, "pki")
	must(t, os.Mkdir(theirs, 0o700))
	r, err := process.StartReference(ctx, kubeAPIServer, etcd, theirs,
		"--client-ca-file", filepath.Join(pki, "ca.crt"),
		"--requestheader-client-ca-file", filepath.Join(pki, "front-proxy-ca.pem"),
		"--requestheader-allowed-names=front-proxy-client", "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--runtime-config=internal.apiserver.k8s.io/v1alpha1=true")
	must(t, err)
	t.Cleanup(r.Kill)
	key, err := os.ReadFile(filepath.Join(theirs, "service-account.key"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(pki, "sa.key"), key, 0o600))
	config, err := clientcmd.LoadFromFile(r.Kubeconfig)
	must(t, err)
	// anykind derives kubeconfigs of users from one in the form of its own.
	for _, cluster := range config.Clusters {
		cluster.InsecureSkipTLSVerify = false
		cluster.CertificateAuthorityData, err = os.ReadFile(filepath.Join(theirs, "certificates", "apiserver.crt"))
		must(t, err)
		config.Clusters = map[string]*api.Cluster{"anykind": cluster}
		for _, c := range config.Contexts {
			c.Cluster = "anykind"
		}
	}
	must(t, clientcmd.WriteToFile(*config, filepath.Join(dir, "admin.kubeconfig")))
}
