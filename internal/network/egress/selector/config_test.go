package selector

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anykind/anykind/internal/network/pki"
)

// list returns a configuration with a connection for the cluster.
func list(connection string) string {
	return "apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\negressSelections: [{name: cluster, connection: " + connection + "}]\n"
}

// Errors of a file have kube-apiserver's words, in one line.
func TestConfiguration(t *testing.T) {
	dir := t.TempDir()
	made, err := pki.Open("", pki.Hosts("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	put := func(name string, data []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	cert, key := put("cert", made.Serving().CertPEM()), put("key", made.Serving().KeyPEM())
	files := strings.NewReplacer("CERT", cert, "KEY", key, "NONE", filepath.Join(dir, "none"))
	for _, tt := range []struct{ name, data, err string }{
		{"the file of the documentation", list("{proxyProtocol: GRPC, transport: {uds: {udsName: /etc/kubernetes/konnectivity-server/konnectivity-server.socket}}}"), ""},
		{"the older version", strings.Replace(list("{proxyProtocol: Direct}"), "v1beta1", "v1alpha1", 1), ""},
		{"mutual TLS", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://127.0.0.1:8131', tlsConfig: {caBundle: CERT, clientCert: CERT, clientKey: KEY, tlsServerName: konnectivity}}}}"), ""},
		{"the authorities of the machine", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://127.0.0.1:8131', tlsConfig: {clientCert: CERT, clientKey: KEY}}}}"), ""},
		{"HTTP on a socket", list("{proxyProtocol: HTTPConnect, transport: {uds: {udsName: s}}}"), ""},
		{"names in any case", strings.Replace(list("{proxyProtocol: Direct}"), "cluster", "Cluster", 1), ""},

		{"the older name of controlplane", strings.Replace(list("{proxyProtocol: Direct}"), "[", "[{name: master, connection: {proxyProtocol: GRPC, transport: {uds: {udsName: s}}}}, ", 1), ""},

		{"no file", "", `failed to read egress selector config: unable to read egress selector configuration from "NONE" [open NONE: no such file or directory]`},
		{"no YAML", "{", `couldn't get version/kind; json parse error`},
		{"no such version", strings.Replace(list("{}"), "v1beta1", "v1", 1), `no kind "EgressSelectorConfiguration" is registered for version "apiserver.k8s.io/v1"`},
		{"another kind", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\njwt: []\n", "failed to read egress selector config: unexpected config type: apiserver.config.k8s.io/v1, Kind=AuthenticationConfiguration"},
		{"an unknown field", list("{proxyProtocol: Direct, via: x}"), `strict decoding error: unknown field "egressSelections[0].connection.via"`},
		{"an unknown name", strings.Replace(list("{proxyProtocol: Direct}"), "cluster", "node", 1), `failed to validate egress selector configuration: service.connection: Unsupported value: "node": supported values: "cluster", "controlplane", "etcd"`},
		{"a name twice", strings.Replace(list("{proxyProtocol: Direct}"), "[", "[{name: CLUSTER, connection: {proxyProtocol: Direct}}, ", 1), `service.connection[1]: Duplicate value: "cluster"`},
		{"no protocol", list("{}"), `service.connection.protocol: Unsupported value: "": supported values: "Direct", "HTTPConnect", "GRPC"`},
		{"a transport of nothing", list("{proxyProtocol: Direct, transport: {}}"), `service.connection.transport: Invalid value: "direct": config must be absent for direct connect`},
		{"HTTPConnect by nothing", list("{proxyProtocol: HTTPConnect}"), "service.connection.transport: Required value: transport must be set for HTTPConnect"},
		{"HTTPConnect by an empty transport", list("{proxyProtocol: HTTPConnect, transport: {}}"), "service.connection.tcp: Required value: One of TCP or UDS must be set"},
		{"both transports", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a'}, uds: {udsName: s}}}"), "TCP and UDS cannot both be set"},
		{"GRPC by nothing", list("{proxyProtocol: GRPC}"), "service.connection.transport: Required value: transport must be set for GRPC"},
		{"GRPC by TCP", list("{proxyProtocol: GRPC, transport: {tcp: {url: 'https://a'}}}"), "service.connection.uds: Required value: UDS must be set with GRPC"},
		{"a socket without a name", list("{proxyProtocol: GRPC, transport: {uds: {udsName: ''}}}"), `service.connection.udsName: Invalid value: "nil": must be present for UDS connections`},
		{"another scheme", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'socks5://a'}}}"), `service.connection.url: Invalid value: "socks5://a": supported connection protocols are http:// and https://`},
		{"HTTP with certificates", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://a', tlsConfig: {}}}}"), `service.connection.tlsConfig: Invalid value: "nil": config must not be present when using HTTP`},
		{"HTTP without TLS", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'http://a'}}}"), `service.connection.url: Invalid value: "http://a": a proxy is spoken to by https:// or a UDS`},
		{"HTTPS without certificates", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a'}}}"), "service.connection.tlsConfig: Required value: TLSConfig must be present when using HTTPS"},
		{"empty certificates", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', tlsConfig: {}}}}"), `[service.connection.tlsConfig.clientCert: Invalid value: "nil": Using TLS requires clientCert, service.connection.tlsConfig.clientKey: Invalid value: "nil": Using TLS requires requires clientKey]`},
		{"missing certificates", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', tlsConfig: {caBundle: NONE, clientCert: NONE, clientKey: NONE}}}}"), `[service.connection.tlsConfig.caBundle: Invalid value: "NONE": TLS config ca bundle does not exist, service.connection.tlsConfig.clientCert: Invalid value: "NONE": TLS client cert does not exist, service.connection.tlsConfig.clientKey: Invalid value: "NONE": TLS client key does not exist]`},
		{"a key that is none", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', tlsConfig: {clientCert: CERT, clientKey: CERT}}}}"), `failed to create dialer for egressSelection "cluster": failed to read key pair CERT & CERT, got tls: `},
		{"an authority that is none", list("{proxyProtocol: HTTPConnect, transport: {tcp: {url: 'https://a', tlsConfig: {caBundle: KEY, clientCert: CERT, clientKey: KEY}}}}"), "failed to append CA cert to the cert pool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(dir, "none")
			if tt.data != "" {
				file = put("config", []byte(files.Replace(tt.data)))
			}
			s, err := Open(file)
			switch want := files.Replace(tt.err); {
			case err == nil && want == "":
				if s.Dial(Cluster) == nil || (s.Dial(ControlPlane) != nil) != strings.Contains(tt.data, "master") || s.Dial(Etcd) != nil {
					t.Errorf("the ways are %v", s.ways)
				}
			case err == nil || want == "" || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n"):
				t.Errorf("%v\nwant %s", err, want)
			}
		})
	}
}

// Without a configuration or a list there is no Selector, and there are no metrics.
func TestNoConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(file, []byte("apiVersion: apiserver.k8s.io/v1beta1\nkind: EgressSelectorConfiguration\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", file} {
		s, err := Open(name)
		if err != nil || s.Configured() || s.Dial(Cluster) != nil || s.Collectors() != nil {
			t.Errorf("%q: %v, %v", name, s, err)
		}
	}
}
