package kubeconfig

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/clientcmd/api/latest"
)

// load loads a kubeconfig as clients do.
func load(t *testing.T, data []byte) *api.Config {
	t.Helper()
	config, err := runtime.Decode(latest.Codec, data)
	if err != nil {
		t.Fatal(err)
	}
	return config.(*api.Config)
}

// administrator returns Credentials with a new key and certificate.
func administrator(t *testing.T, server string) Credentials {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, der []byte) []byte {
		return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	}
	a := Credentials{User: Administrator, Server: server, Certificate: encode("CERTIFICATE", certificate), Key: encode("PRIVATE KEY", private)}
	a.CA = a.Certificate
	return a
}

// Clients can use the kubeconfig.
func TestKubeconfig(t *testing.T) {
	a := administrator(t, "https://127.0.0.1:6443")
	config := load(t, a.Encode())
	context := config.Contexts[config.CurrentContext]
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster.Server != "https://127.0.0.1:6443" || !bytes.Equal(cluster.CertificateAuthorityData, a.CA) {
		t.Errorf("%+v", cluster)
	}
	if _, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData); err != nil || !bytes.Equal(user.ClientCertificateData, a.Certificate) {
		t.Error(err)
	}
}

func stored(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWriteKubeconfig(t *testing.T) {
	k := administrator(t, "https://127.0.0.1:6443")
	path := filepath.Join(t.TempDir(), "new", "kubeconfig")
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || stored(t, path) != string(k.Encode()) {
		t.Errorf("%v, %v", info, err)
	}

	// Writing the same again does not touch the file.
	before, _ := os.Stat(path)
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was written again: %v", err)
	}

	// A server at another address replaces the first.
	k = administrator(t, "https://127.0.0.1:7443")
	if err := k.Write(path); err != nil || stored(t, path) != string(k.Encode()) {
		t.Errorf("%v\n%s", err, stored(t, path))
	}
}

// Changes by kubectl config survive.
func TestWriteKubeconfigKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	k := administrator(t, "https://127.0.0.1:6443")
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	config := load(t, []byte(stored(t, path)))
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

	k = administrator(t, "https://127.0.0.1:7443")
	if err := k.Write(path); err != nil {
		t.Fatal(err)
	}
	config = load(t, []byte(stored(t, path)))
	if config.CurrentContext != "second" || config.Contexts["anykind"].Namespace != "mine" || config.Contexts["second"].Namespace != "other" ||
		config.Clusters["anykind"].Server != "https://127.0.0.1:7443" || !bytes.Equal(config.AuthInfos["anykind-admin"].ClientCertificateData, k.Certificate) {
		t.Errorf("%+v", config)
	}
}

// A file of another program is never changed.
func TestWriteKubeconfigRefuses(t *testing.T) {
	k := administrator(t, "https://127.0.0.1:6443")
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
		if err := k.Write(path); err == nil || !strings.Contains(err.Error(), "anykind did not write "+path+" and does not replace it") {
			t.Errorf("%s: %v", name, err)
		}
		if stored(t, path) != content {
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
	if err := k.Write(link); err != nil || stored(t, empty) != string(k.Encode()) {
		t.Errorf("an empty file behind a link: %v", err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != os.ModeSymlink {
		t.Errorf("the link is gone: %v", err)
	}
}

// A second user is added to an existing file, and is the only one in a new file.
func TestWriteAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.kubeconfig")
	admin := administrator(t, "https://127.0.0.1:6443")
	if err := admin.Write(path); err != nil {
		t.Fatal(err)
	}
	jane := administrator(t, "https://127.0.0.1:6443")
	jane.User = "jane@example.com"
	if err := jane.Write(path); err != nil {
		t.Fatal(err)
	}
	config := load(t, []byte(stored(t, path)))
	context := config.Contexts["jane@example.com@anykind"]
	if config.CurrentContext != "anykind" || context == nil || context.Cluster != "anykind" ||
		!bytes.Equal(config.AuthInfos[context.AuthInfo].ClientCertificateData, jane.Certificate) ||
		!bytes.Equal(config.AuthInfos["anykind-admin"].ClientCertificateData, admin.Certificate) {
		t.Errorf("%+v", config)
	}
	if config := load(t, jane.Encode()); config.CurrentContext != "jane@example.com@anykind" || len(config.AuthInfos) != 1 {
		t.Errorf("%+v", config)
	}
}

func TestReadCluster(t *testing.T) {
	path := filepath.Join(t.TempDir(), "admin.kubeconfig")
	a := administrator(t, "https://127.0.0.1:7443")
	if err := a.Write(path); err != nil {
		t.Fatal(err)
	}
	if server, ca, err := ReadCluster(path); err != nil || server != "https://127.0.0.1:7443" || !bytes.Equal(ca, a.CA) {
		t.Errorf("%s, %s, %v", server, ca, err)
	}
	if err := os.WriteFile(path, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := ReadCluster(path); err == nil || !strings.Contains(err.Error(), `has no cluster "anykind"`) {
		t.Errorf("a kubeconfig without our cluster: %v", err)
	}
}
