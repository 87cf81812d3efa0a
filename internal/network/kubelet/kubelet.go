// Package kubelet finds the kubelet of a node, and connects to it.
//
// It knows where a node says that its kubelet listens, and by which certificates the two
// know each other. It does not know what a kubelet is asked.
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

// port is where a kubelet listens whose node does not say.
const port = 10250

// AddressTypes are the addresses of a node in the order in which they are preferred, unless
// Options say otherwise.
func AddressTypes() []string {
	return []string{
		string(corev1.NodeHostName), string(corev1.NodeInternalDNS), string(corev1.NodeInternalIP),
		string(corev1.NodeExternalDNS), string(corev1.NodeExternalIP),
	}
}

// Timeout is how long connecting may take, unless Options say otherwise.
const Timeout = 5 * time.Second

// Options of a Client. All may be left out.
type Options struct {
	// CertFile and KeyFile are the certificate that kubelets know us by. They are read
	// again when they change, and no connection of before is used again then.
	CertFile, KeyFile string
	Log               *slog.Logger // which says that they have changed
	// CAFile has the authorities that sign the certificates of kubelets. Without, any
	// certificate is taken.
	CAFile       string
	Timeout      time.Duration // Timeout if 0
	AddressTypes []string      // AddressTypes if nil
	Dial         func(ctx context.Context, network, address string) (net.Conn, error)
	Proxy        func(*http.Request) (*url.URL, error) // none if nil
}

// A Client connects to kubelets.
type Client struct {
	types            []string
	secure, insecure *transport
}

// New returns a Client. It fails if a file cannot be read.
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
	anybody := &tls.Config{InsecureSkipVerify: true}
	verified := anybody
	if o.CAFile != "" {
		roots := x509.NewCertPool()
		data, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("--kubelet-certificate-authority: %w", err)
		}
		if !roots.AppendCertsFromPEM(data) {
			return nil, fmt.Errorf("--kubelet-certificate-authority: %s has no certificate", o.CAFile)
		}
		verified = anybody.Clone()
		verified.InsecureSkipVerify, verified.RootCAs = false, roots
	}
	return &Client{types: o.AddressTypes, secure: &transport{o: o, config: verified, own: own}, insecure: &transport{o: o, config: anybody, own: own}}, nil
}

// A transport connects with the certificate that the server has now.
type transport struct {
	o      Options
	config *tls.Config
	own    func() *tls.Certificate // nil for none

	mu      sync.Mutex
	with    *tls.Certificate // which current has
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

// transport speaks HTTP/1.1, which is what can be upgraded.
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

// Transport is for requests to kubelets, whose certificates are verified.
func (c *Client) Transport() http.RoundTripper { return c.secure }

// InsecureTransport is for requests to kubelets that may be anybody.
func (c *Client) InsecureTransport() http.RoundTripper { return c.insecure }

// Close ends the connections that nobody uses.
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
