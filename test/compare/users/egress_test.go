package users

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/anykind/anykind/test/program"
)

// theirConfig is the configuration as a kube-apiserver says it, by its addresses in memory; anykind names
// the file.
var theirConfig = regexp.MustCompile(`(failed to setup egress selector) with .*?: (failed to create)`)

// A configuration of the ways out that is wrong stops both servers, in the same words.
func TestEgressRefused(t *testing.T) {
	if *reference != "start" {
		t.Skip("compares with a kube-apiserver: -reference start")
	}
	theirs, err := program.KubeAPIServer()
	if err != nil {
		t.Fatal(err)
	}
	ours, err := program.Anykind()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, text string) string { return write(t, filepath.Join(dir, name), []byte(text)) }
	a := newAuthority(t, "authority")
	cert := file("cert", string(a.pem()))
	const head = "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n"
	list := func(selections string) string { return head + "egressSelections: [" + selections + "]\n" }
	cluster := func(connection string) string { return list("{name: cluster, connection: {" + connection + "}}") }
	tcp := func(tcp string) string { return cluster("proxyProtocol: HTTPConnect, transport: {tcp: {" + tcp + "}}") }
	cases := map[string]string{
		"an empty file":                " ",
		"not YAML":                     "a: [",
		"another kind":                 "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n",
		"another version":              strings.Replace(head, "v1beta1", "v1", 1),
		"an unknown field":             head + "a: 1\n",
		"an unknown name":              list("{name: node, connection: {proxyProtocol: Direct}}"),
		"a name twice":                 list("{name: etcd, connection: {proxyProtocol: Direct}}, {name: Etcd, connection: {proxyProtocol: Direct}}"),
		"an old name twice":            list("{name: master, connection: {proxyProtocol: Direct}}, {name: controlplane, connection: {proxyProtocol: Direct}}"),
		"no protocol":                  cluster(""),
		"Direct by something":          cluster("proxyProtocol: Direct, transport: {}"),
		"HTTPConnect by nothing":       cluster("proxyProtocol: HTTPConnect"),
		"HTTPConnect by neither":       cluster("proxyProtocol: HTTPConnect, transport: {}"),
		"HTTPConnect by an empty name": cluster("proxyProtocol: HTTPConnect, transport: {uds: {}}"),
		"GRPC by nothing":              cluster("proxyProtocol: GRPC"),
		"GRPC by TCP":                  cluster("proxyProtocol: GRPC, transport: {tcp: {url: 'https://a'}}"),
		"GRPC by an empty name":        cluster("proxyProtocol: GRPC, transport: {uds: {udsName: ''}}"),
		"another scheme":               tcp("url: 'ssh://a'"),
		"HTTP with certificates":       tcp("url: 'http://a', tlsConfig: {}"),
		"HTTPS without certificates":   tcp("url: 'https://a'"),
		"empty certificates":           tcp("url: 'https://a', tlsConfig: {}"),
		"missing certificates":         tcp("url: 'https://a', tlsConfig: {caBundle: /none, clientCert: /none, clientKey: /none}"),
		"a key that is none":           tcp(fmt.Sprintf("url: 'https://a', tlsConfig: {caBundle: %[1]s, clientCert: %[1]s, clientKey: %[1]s}", cert)),
		"several mistakes":             list("{name: a, connection: {proxyProtocol: b}}, {name: a, connection: {proxyProtocol: GRPC}}"),
	}
	signing, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		t.Fatal(err)
	}
	key := file("key", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: signing})))
	compare := func(name, flag string) {
		known := []string{"--etcd-servers=http://127.0.0.1:1", "--service-account-issuer=https://us", "--service-account-key-file=" + key,
			"--service-account-signing-key-file=" + key, "--service-cluster-ip-range=10.0.0.0/24", "--cert-dir=" + filepath.Join(dir, "certs"), "--authorization-mode=RBAC", flag}
		want := theirConfig.ReplaceAllString(refusal(t, theirs, known...), "$1: $2")
		got := theirConfig.ReplaceAllString(refusal(t, ours, "serve", "--in-memory", "--data-dir", filepath.Join(dir, "ours"), "--secure-port", "0", flag), "$1: $2")
		if got != want || strings.HasPrefix(got, notRefused) {
			t.Errorf("%s:\nkube-apiserver says %s\nanykind says        %s", name, want, got)
		}
	}
	for name, text := range cases {
		compare(name, "--egress-selector-config-file="+file(strings.ReplaceAll(name, " ", "-"), text))
	}
	compare("no such file", "--egress-selector-config-file="+filepath.Join(dir, "none"))
	t.Logf("%d refusals compared", len(cases)+1)
}
