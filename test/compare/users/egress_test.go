package users

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/pki/pkitest"
)

// An invalid egress selector configuration stops both servers, with the same message.
func TestEgressRefused(t *testing.T) {
	r := newRefusals(t)
	cert := r.file("cert", string(pkitest.Authority(t, "authority").CertPEM()))
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
	for name, text := range cases {
		r.compare(name, "--egress-selector-config-file="+r.file(strings.ReplaceAll(name, " ", "-"), text))
	}
	r.compare("no such file", "--egress-selector-config-file="+filepath.Join(r.dir, "none"))
	t.Logf("%d refusals compared", len(cases)+1)
}
