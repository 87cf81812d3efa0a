package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"
)

// load reads a kubeconfig as clients do.
func load(t *testing.T, data []byte) *api.Config {
	t.Helper()
	config, err := runtime.Decode(latest.Codec, data)
	if err != nil {
		t.Fatal(err)
	}
	return config.(*api.Config)
}

// Clients find in a kubeconfig what they need.
func TestKubeconfig(t *testing.T) {
	p := open(t, "")
	config := load(t, p.Kubeconfig("https://127.0.0.1:6443").Encode())
	context := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster.Server != "https://127.0.0.1:6443" || !bytes.Equal(cluster.CertificateAuthorityData, p.CA()) {
		t.Errorf("%+v", cluster)
	}
	if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil || !bytes.Equal(user.ClientCertificateData, p.Admin().CertPEM()) {
		t.Error(err)
	}
}

// Somebody's own serving certificate is trusted as it is.
func TestTrust(t *testing.T) {
	p := open(t, "")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(Trust(p.server))
	if _, err := p.serving.Cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: "localhost"}); err != nil {
		t.Error(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteKubeconfig(t *testing.T) {
	p := open(t, "")
	k := p.Kubeconfig("https://127.0.0.1:6443")
	path := filepath.Join(t.TempDir(), "new", "kubeconfig")
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || read(t, path) != string(k.Encode()) {
		t.Errorf("%v, %v", info, err)
	}

	// The same again does not touch the file.
	before, _ := os.Stat(path)
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written again: %v", err)
	}

	// Another server at another address takes the place of the first.
	k = open(t, "").Kubeconfig("https://127.0.0.1:7443")
	if err := k.Write(path); err != nil || read(t, path) != string(k.Encode()) {
		t.Errorf("%v\n%s", err, read(t, path))
	}
}

// What the owner of the file did to it with kubectl config stays.
func TestWriteKubeconfigKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	k := open(t, "").Kubeconfig("https://127.0.0.1:6443")
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	config := load(t, []byte(read(t, path)))
	config.Contexts["anykind"].Namespace = "mine"
	other := config.Contexts["anykind"].DeepCopy()
	other.Namespace = "other"
	config.Contexts["second"] = other
	config.CurrentContext = "second"
	data, err := runtime.Encode(latest.Codec, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}

	k = open(t, "").Kubeconfig("https://127.0.0.1:7443")
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	config = load(t, []byte(read(t, path)))
	if config.CurrentContext != "second" || config.Contexts["anykind"].Namespace != "mine" || config.Contexts["second"].Namespace != "other" ||
		config.Clusters["anykind"].Server != "https://127.0.0.1:7443" || !bytes.Equal(config.AuthInfos["anykind-admin"].ClientCertificateData, k.Client.CertPEM()) {
		t.Errorf("%+v", config)
	}
}

// A file of somebody else is never touched.
func TestWriteKubeconfigRefuses(t *testing.T) {
	k := open(t, "").Kubeconfig("https://127.0.0.1:6443")
	for name, content := range map[string]string{
		"another's":          "apiVersion: v1\nkind: Config\nclusters:\n- name: production\n  cluster: {server: https://example.com}\n",
		"one with our names": "apiVersion: v1\nkind: Config\nclusters:\n- name: anykind\n  cluster: {server: https://example.com}\n",
		"not YAML":           "a: [",
		"not a kubeconfig":   "hello",
	} {
		path := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := k.Write(path); err == nil || !strings.Contains(err.Error(), path+" was not written by anykind and is left as it is") {
			t.Errorf("%s: %v", name, err)
		}
		if read(t, path) != content {
			t.Errorf("%s: was changed", name)
		}
	}

	dir := t.TempDir()
	if err := k.Write(dir); err == nil {
		t.Error("a directory was taken for a file")
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(empty, link); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(link); err != nil || read(t, empty) != string(k.Encode()) {
		t.Errorf("an empty file behind a link: %v", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v", err)
	}
}
