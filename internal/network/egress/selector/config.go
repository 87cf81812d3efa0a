package selector

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/anykind/anykind/internal/network/configfile"
)

// Open reads an EgressSelectorConfiguration file. It returns nil without a file, or if the file
// has no list of selections. Errors have kube-apiserver's words.
func Open(file string) (*Selector, error) {
	if file == "" {
		return nil, nil
	}
	c, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("failed to read egress selector config: %w", err)
	}
	if err := check(c).ToAggregate(); err != nil {
		return nil, fmt.Errorf("failed to validate egress selector configuration: %w", err)
	}
	if c.EgressSelections == nil {
		return nil, nil
	}
	s, err := newSelector(c)
	if err != nil {
		return nil, fmt.Errorf("failed to setup egress selector with the config of %s: %w", file, err)
	}
	return s, nil
}

func read(file string) (*apiserver.EgressSelectorConfiguration, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("unable to read egress selector configuration from %q [%w]", file, err)
	}
	decoded, kind, err := configfile.DecodeAny(data)
	if err != nil {
		return nil, err
	}
	c, ok := decoded.(*apiserver.EgressSelectorConfiguration)
	if !ok {
		return nil, fmt.Errorf("unexpected config type: %v", kind)
	}
	return c, nil
}

// canonical returns a name in the form in which names are compared.
func canonical(name string) Name { return Name(strings.ToLower(name)) }

// check validates a configuration.
func check(c *apiserver.EgressSelectorConfiguration) (errs field.ErrorList) {
	at := field.NewPath("service", "connection")
	for _, selection := range c.EgressSelections {
		errs = append(errs, checkConnection(selection.Connection, at)...)
	}
	seen := map[Name]bool{}
	for i, selection := range c.EgressSelections {
		name := canonical(selection.Name)
		switch {
		case seen[name]:
			errs = append(errs, field.Duplicate(at.Index(i), string(name)))
		case name != Cluster && name != ControlPlane && name != Etcd:
			errs = append(errs, field.NotSupported(at, string(name), []Name{Cluster, ControlPlane, Etcd}))
		}
		seen[name] = true
	}
	return errs
}

func checkConnection(c apiserver.Connection, at *field.Path) field.ErrorList {
	protocols := []apiserver.ProtocolType{apiserver.ProtocolDirect, apiserver.ProtocolHTTPConnect, apiserver.ProtocolGRPC}
	switch t := c.Transport; {
	case c.ProxyProtocol == apiserver.ProtocolDirect && t != nil:
		return field.ErrorList{field.Invalid(at.Child("transport"), "direct", "config must be absent for direct connect")}
	case c.ProxyProtocol == apiserver.ProtocolDirect:
		return nil
	case c.ProxyProtocol != apiserver.ProtocolHTTPConnect && c.ProxyProtocol != apiserver.ProtocolGRPC:
		return field.ErrorList{field.NotSupported(at.Child("protocol"), c.ProxyProtocol, protocols)}
	case t == nil:
		return field.ErrorList{field.Required(at.Child("transport"), "transport must be set for "+string(c.ProxyProtocol))}
	case c.ProxyProtocol == apiserver.ProtocolGRPC && t.UDS == nil:
		return field.ErrorList{field.Required(at.Child("uds"), "UDS must be set with GRPC")}
	case c.ProxyProtocol == apiserver.ProtocolGRPC:
		return checkUDS(t.UDS, at)
	case t.TCP != nil && t.UDS != nil:
		return field.ErrorList{field.Invalid(at.Child("tcp"), t.TCP, "TCP and UDS cannot both be set")}
	case t.UDS != nil:
		return checkUDS(t.UDS, at)
	case t.TCP != nil:
		return checkTCP(t.TCP, at)
	}
	return field.ErrorList{field.Required(at.Child("tcp"), "One of TCP or UDS must be set")}
}

func checkUDS(c *apiserver.UDSTransport, at *field.Path) field.ErrorList {
	if c.UDSName == "" {
		return field.ErrorList{field.Invalid(at.Child("udsName"), "nil", "must be present for UDS connections")}
	}
	return nil
}

func checkTCP(c *apiserver.TCPTransport, at *field.Path) field.ErrorList {
	switch {
	case strings.HasPrefix(c.URL, "https://"):
		return checkTLS(c.TLSConfig, at.Child("tlsConfig"))
	case !strings.HasPrefix(c.URL, "http://"):
		return field.ErrorList{field.Invalid(at.Child("url"), c.URL, "supported connection protocols are http:// and https://")}
	case c.TLSConfig != nil:
		return field.ErrorList{field.Invalid(at.Child("tlsConfig"), "nil", "config must not be present when using HTTP")}
	}
	// kube-apiserver crashes on this configuration.
	return field.ErrorList{field.Invalid(at.Child("url"), c.URL, "a proxy is spoken to by https:// or a UDS")}
}

func checkTLS(c *apiserver.TLSConfig, at *field.Path) (errs field.ErrorList) {
	if c == nil {
		return field.ErrorList{field.Required(at, "TLSConfig must be present when using HTTPS")}
	}
	for _, f := range []struct{ field, file, none, missing string }{
		{"caBundle", c.CABundle, "", "TLS config ca bundle does not exist"},
		{"clientCert", c.ClientCert, "Using TLS requires clientCert", "TLS client cert does not exist"},
		{"clientKey", c.ClientKey, "Using TLS requires requires clientKey", "TLS client key does not exist"},
	} {
		if f.file == "" {
			if f.none != "" {
				errs = append(errs, field.Invalid(at.Child(f.field), "nil", f.none))
			}
			continue
		}
		if _, err := os.Stat(f.file); err != nil {
			errs = append(errs, field.Invalid(at.Child(f.field), f.file, f.missing))
		}
	}
	return errs
}

// tlsConfig reads the client certificate and the CA for a proxy.
func tlsConfig(c *apiserver.TLSConfig) (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("failed to read key pair %s & %s, got %w", c.ClientCert, c.ClientKey, err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, ServerName: c.TLSServerName}
	if c.CABundle == "" {
		return config, nil // the CAs of the system
	}
	bundle, err := os.ReadFile(c.CABundle)
	if err != nil {
		return nil, fmt.Errorf("failed to read cert file %s, got %w", c.CABundle, err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(bundle) {
		return nil, fmt.Errorf("failed to append CA cert to the cert pool")
	}
	return config, nil
}

// hostOf returns host:port of a proxy's URL.
func hostOf(proxy string) (string, error) {
	u, err := url.Parse(proxy)
	if err != nil {
		return "", fmt.Errorf("invalid proxy server url %q: %w", proxy, err)
	}
	return u.Host, nil
}
