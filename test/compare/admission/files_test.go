package admission

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/anykind/anykind/test/compare/servers"
	"github.com/anykind/anykind/test/program"
)

// A refusal is a set of files with which neither server starts, for one of the plugins with a
// staticManifestsDir.
type refusal struct {
	Name   string
	Plugin string
	// Files are the files of the folder, by name.
	Files map[string]string
	// Dir is the staticManifestsDir, if it is not the folder.
	Dir string
	// Ours is the message of anykind, if it differs from kube-apiserver's, which may contain Go types.
	Ours string
}

// Neither server starts with invalid files, and both report the same message.
func TestRefusedFiles(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	data, err := os.ReadFile("refused.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []refusal
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		t.Fatal(err)
	}
	store, end, err := servers.StartEtcd(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(end)
	kubeAPIServer, err := program.KubeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	anykind, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		t.Run(r.Plugin+"/"+r.Name, func(t *testing.T) {
			folder, config := t.TempDir(), filepath.Join(t.TempDir(), "admission.yaml")
			for name, content := range r.Files {
				if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			dir := r.Dir
			if dir == "" {
				dir = folder
			}
			if err := os.WriteFile(config, []byte(configuration(r.Plugin, dir)), 0o600); err != nil {
				t.Fatal(err)
			}
			theirs, ours := startTheirs(t, kubeAPIServer, store, config), run(t, anykind, "serve", "--in-memory", "--data-dir", t.TempDir(), "--secure-port", "0", "--admission-control-config-file", config)
			reason := func(said string) string { return strings.ReplaceAll(why(said), folder, "FOLDER") }
			want := reason(theirs)
			if want == "" {
				t.Fatalf("kube-apiserver says\n%.2000s", theirs)
			}
			if r.Ours != "" {
				want = r.Ours
			}
			if got := reason(ours); got != want {
				t.Errorf("Kubernetes %s\nanykind    %s", want, got)
			}
			t.Log(want)
		})
	}
}

// configuration returns the configuration of a plugin with a folder.
func configuration(plugin, dir string) string {
	kind := plugin + "Configuration"
	if strings.HasSuffix(plugin, "Webhook") {
		kind = "WebhookAdmissionConfiguration"
	}
	return fmt.Sprintf(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins: [{name: %s, configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: %s, staticManifestsDir: %q}}]`, plugin, kind, dir)
}

var (
	// failed matches kube-apiserver's report of its failure.
	failed = regexp.MustCompile(`"command failed" err=("(?:[^"\\]|\\.)*")`)
	lines  = regexp.MustCompile(`(?s)"command failed" err=<\n\t(.*?)\n >`) // the form for messages with line feeds
	// begins matches the start of the common part of the message.
	begins = regexp.MustCompile(`(?s)manifests from "[^"]*": (.*)|(staticManifestsDir: .*)`)
	scheme = regexp.MustCompile(` in scheme "[^"]*"`) // names a line of the source
)

// why extracts the reason of a failed start from the output of a server.
func why(said string) string {
	if m := failed.FindStringSubmatch(said); m != nil {
		said, _ = strconv.Unquote(m[1])
	} else if m := lines.FindStringSubmatch(said); m != nil {
		said = strings.ReplaceAll(m[1], "\n\t", "\n")
	}
	m := begins.FindStringSubmatch(said)
	if m == nil {
		return ""
	}
	return strings.TrimSpace(scheme.ReplaceAllString(m[1]+m[2], ""))
}

// startTheirs starts a kube-apiserver that will fail, and returns its output.
func startTheirs(t *testing.T, kubeAPIServer, store, config string) string {
	t.Helper()
	dir := t.TempDir()
	signing, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(signing)
	if err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key.pem")
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	return run(t, kubeAPIServer, "--etcd-servers", store, "--bind-address", "127.0.0.1", "--secure-port", port,
		"--cert-dir", dir, "--service-account-issuer", "https://localhost", "--service-account-key-file", key,
		"--service-account-signing-key-file", key, "--service-cluster-ip-range", "10.0.0.0/24", "--admission-control-config-file", config)
}

// run runs a program to its end, and returns its output.
func run(t *testing.T, name string, flags ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	said, err := exec.CommandContext(ctx, name, flags...).CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Errorf("%s ended with %v (%v) and wrote\n%.500s", name, err, ctx.Err(), said)
	}
	return string(said)
}
