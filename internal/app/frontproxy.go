package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/object/gate"
)

// A FrontProxy configures authentication by front proxies, as the flags --requestheader-* of
// kube-apiserver do.
type FrontProxy struct {
	CAFile       string   // CAs of their certificates; "" disables front proxies
	AllowedNames []string // common names of their certificates; nil allows all
	Headers      authn.ProxyHeaders

	// CertFile and KeyFile are the client certificate of this server as a proxy to other API
	// servers.
	CertFile, KeyFile string

	own bool // the server generates the CA
}

// frontProxyName is the common name of front proxies with a certificate of the generated CA.
const frontProxyName = "front-proxy-client"

// OrOwn returns f if it has a CA. Otherwise the server generates one and publishes it to extension
// API servers, which would otherwise log errors all the time. Headers that f omits default to the
// standard ones.
func (f FrontProxy) OrOwn() FrontProxy {
	if f.CAFile != "" {
		return f
	}
	f.own, f.AllowedNames = true, append([]string{frontProxyName}, f.AllowedNames...)
	standard := authn.StandardProxyHeaders()
	for _, header := range []struct{ given, standard *[]string }{
		{&f.Headers.Username, &standard.Username}, {&f.Headers.Group, &standard.Group}, {&f.Headers.ExtraPrefix, &standard.ExtraPrefix},
	} {
		if len(*header.given) == 0 {
			*header.given = *header.standard
		}
	}
	return f
}

// addUID adds X-Remote-Uid to the headers of proxies of the generated CA. It does nothing if a flag names another header,
// or if the feature gate is off.
func (f *FrontProxy) addUID(gates *gate.Set) {
	if f.own && len(f.Headers.UID) == 0 && gates.On(gate.RemoteRequestHeaderUID) {
		f.Headers.UID = authn.StandardProxyHeaders().UID
	}
}

// said returns the allowed names and the headers of front proxies.
func (f *FrontProxy) said() authn.Proxies {
	return authn.Proxies{AllowedNames: f.AllowedNames, Headers: f.Headers}
}

// check reports invalid values, and missing headers that would hide the user from other servers.
func (f *FrontProxy) check(clientCAFile string, gates *gate.Set, log *slog.Logger) error {
	var errs []error
	if len(f.Headers.UID) > 0 && !gates.On(gate.RemoteRequestHeaderUID) {
		errs = append(errs, fmt.Errorf("--requestheader-uid-headers requires the %q feature to be enabled", gate.RemoteRequestHeaderUID))
	}
	for _, list := range []struct {
		flag     string
		values   []string
		standard string
		must     bool
	}{
		{"requestheader-username-headers", f.Headers.Username, "X-Remote-User", false},
		{"requestheader-group-headers", f.Headers.Group, "X-Remote-Group", false},
		{"requestheader-extra-headers-prefix", f.Headers.ExtraPrefix, "X-Remote-Extra-", false},
		{"requestheader-allowed-names", f.AllowedNames, "", false},
		{"requestheader-uid-headers", f.Headers.UID, "X-Remote-Uid", true},
	} {
		if slices.ContainsFunc(list.values, func(v string) bool { return strings.TrimSpace(v) == "" }) {
			errs = append(errs, fmt.Errorf("empty value in %q", list.flag))
		}
		if list.standard == "" || len(list.values) == 0 || slices.ContainsFunc(list.values, func(v string) bool { return strings.EqualFold(v, list.standard) }) {
			continue
		}
		message := fmt.Sprintf("--%s is set without specifying the standard %s header - API aggregation will not work", list.flag, list.standard)
		if list.must {
			errs = append(errs, errors.New(message))
		} else {
			log.Warn(message)
		}
	}
	return utilerrors.NewAggregate(append(errs, f.checkAuthorities(clientCAFile)))
}

// checkAuthorities reports CAs that would let any client with a certificate act as a proxy.
func (f *FrontProxy) checkAuthorities(clientCAFile string) error {
	if f.CAFile == "" {
		return nil
	}
	proxies, err := pki.LoadAuthorities(f.CAFile)
	if err != nil || clientCAFile == "" || len(f.AllowedNames) > 0 {
		return err
	}
	clients, err := pki.LoadAuthorities(clientCAFile)
	if err != nil {
		return nil // reported elsewhere
	}
	if pki.NewAuthorities(clients...).Shares(pki.NewAuthorities(proxies...)) {
		return errors.New("--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users")
	}
	return nil
}

// authorities returns the current CAs of proxies, or nil if there are none. The second result is the
// client certificate of this server as a proxy to other API servers, or nil.
func (f *FrontProxy) authorities(own *pki.PKI, log *slog.Logger) (func() *pki.Authorities, func() *tls.Certificate, error) {
	certificate, err := f.certificate(log)
	if err != nil {
		return nil, nil, err
	}
	if f.own {
		pair, err := own.FrontProxy()
		if err != nil {
			return nil, nil, err
		}
		if certificate == nil {
			certificate = pair.RenewedClient(frontProxyName).Get
		}
		only := pki.NewAuthorities(pair.Cert)
		return func() *pki.Authorities { return only }, certificate, nil
	}
	if f.CAFile == "" {
		return nil, certificate, nil
	}
	given, err := pki.WatchAuthorities(f.CAFile, log)
	if err != nil {
		return nil, nil, err
	}
	if len(f.AllowedNames) == 0 && given.Get().Shares(pki.NewAuthorities(own.Authority())) {
		return nil, nil, errors.New("--requestheader-client-ca-file contains the CA of this server, which signs client certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users")
	}
	return given.Get, certificate, nil
}

// certificate returns the configured client certificate, or nil.
func (f *FrontProxy) certificate(log *slog.Logger) (func() *tls.Certificate, error) {
	if f.CertFile == "" || f.KeyFile == "" { // one alone is ignored, as in Kubernetes
		return nil, nil
	}
	given, err := pki.LoadCertificate(f.CertFile, f.KeyFile, log)
	if err != nil {
		return nil, err
	}
	return given.Get, nil
}
