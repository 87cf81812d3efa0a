// Package kubelet locates the kubelet of a node, and connects to it.
//
// It knows the address in a Node, and the certificates of both sides. It does not know the API of
// a kubelet.
package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/anykind/anykind/internal/network/pki"
)

// port is the default port of a kubelet.
const port = 10250

// AddressTypes returns the default order of preference of a node's addresses.
func AddressTypes() []string {
	return []string{
		string(corev1.NodeHostName), string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
		string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
	}
}

// Timeout is the default timeout for connecting.
const Timeout = 5 * time.Second

// Options of a Client. All are optional.
type Options struct {
	// CertFile and KeyFile are the client certificate for kubelets. They are reloaded when they
	// change; old connections are then no longer used.
	CertFile, KeyFile string
	Log               *slog.Logger // logs reloads
	// CAFile has the CAs of kubelets' certificates. Without it, any certificate is accepted.
	CAFile       string
	Timeout      time.Duration // default Timeout
	AddressTypes []string      // default AddressTypes
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
	Proxy        func(*http.Request) (*url.URL, error) // nil for none
}

// A Client connects to kubelets.
type Client struct {
	types            []string
	secure, insecure *transport
}

// New returns a Client. It fails if a file is unreadable.
func New(o Options) (*Client, error) {
	if o.Timeout == 0 {
		o.Timeout = Timeout
	}
	if o.AddressTypes == nil {
		o.AddressTypes = AddressTypes()
	}
	if o.Dial == nil {
		o.Dial = new(net.Dialer).DialContext
	}
	own := func() *tls.Certificate { return nil }
	if o.CertFile != "" || o.KeyFile != "" {
		c, err := pki.LoadCertificate(o.CertFile, o.KeyFile, o.Log)
		if err != nil {
			return nil, fmt.Errorf("the certificate for kubelets: %w", err)
		}
		own = c.Get
	}
	unverified := &tls.Config{InsecureSkipVerify: true}
	verified := unverified
	if o.CAFile != "" {
		roots := x509.NewCertPool()
		data, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--kubelet-certificate-authority: %w", err)
		}
		if !roots.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("--kubelet-certificate-authority: %s has no certificate", o.CAFile)
		}
		verified = unverified.Clone()
		verified.InsecureSkipVerify, verified.RootCAs = false, roots
	}
	return &Client{types: o.AddressTypes, secure: &transport{o: o, config: verified, own: own}, insecure: &transport{o: o, config: unverified, own: own}}, nil
}

// A transport connects with the current client certificate.
type transport struct {
	o      Options
	config *tls.Config
	own    func() *tls.Certificate // nil for none

	mu      sync.Mutex
	with    *tls.Certificate // the certificate of current
	current *http.Transport
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) { return t.now().RoundTrip(r) }

func (t *transport) now() *http.Transport {
	own := t.own()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil || own != t.with {
		t.close()
		config := t.config.Clone()
		if own != nil {
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own, nil }
		}
		t.with, t.current = own, t.o.transport(config)
	}
	return t.current
}

func (t *transport) close() {
	if t.current != nil {
		t.current.CloseIdleConnections()
	}
}

// transport returns a transport for HTTP/1.1, which supports upgrades.
func (o Options) transport(config *tls.Config) *http.Transport {
	return &http.Transport{
		TLSClientConfig:     config,
		TLSHandshakeTimeout: o.Timeout,
		IdleConnTimeout:     90 * time.Second,
		DisableCompression:  true,
		Proxy:               o.Proxy,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, o.Timeout)
			defer cancel()
			return o.Dial(ctx, network, address)
		},
	}
}

// Transport returns a transport that verifies the certificates of kubelets.
func (c *Client) Transport() http.RoundTripper { return c.secure }

// InsecureTransport returns a transport that accepts any certificate.
func (c *Client) InsecureTransport() http.RoundTripper { return c.insecure }

// Close closes idle connections.
func (c *Client) Close() {
	for _, t := range []*transport{c.secure, c.insecure} {
		t.mu.Lock()
		t.close()
		t.mu.Unlock()
	}
}

// Locate returns the address of the kubelet of a node.
func (c *Client) Locate(node *corev1.Node) (*url.URL, error) {
	for _, of := range c.types {
		for _, a := range node.Status.Addresses {
			if string(a.Type) != of {
				continue
			}
			at := int(node.Status.DaemonEndpoints.KubeletEndpoint.Port)
			if at <= 0 {
				at = port
			}
			return &url.URL{Scheme: "https", Host: net.JoinHostPort(a.Address, strconv.Itoa(at))}, nil
		}
	}
	return nil, fmt.Errorf("no preferred addresses found; known addresses: %v; there is no node agent to ask: the status of Node %q does not say where its kubelet is",
		node.Status.Addresses, node.Name)
}
