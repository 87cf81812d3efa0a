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
)

// A FrontProxy says which proxies are believed whose a request is, as the flags
// --requestheader-* of kube-apiserver do.
type FrontProxy struct {
	CAFile       string   // authorities of their certificates; "" is for no proxies
	AllowedNames []string // common names of their certificates; nil is all
	Headers      authn.ProxyHeaders

	// CertFile and KeyFile are the certificate of this server where it is a proxy in front of
	// other API servers.
	CertFile, KeyFile string

	own bool // the authority is made by the server
}

// frontProxyName is that of a front proxy in a certificate by an authority that the server
// made.
const frontProxyName = "front-proxy-client"

// OrOwn returns f if it names authorities. If not, the server makes one, which the programs
// that know users as this server does are told of: without one they log errors all the time.
// Headers that f does not name are the standard ones then.
func (f FrontProxy) OrOwn() FrontProxy {
	if f.CAFile != "" {
		return f
	}
	f.own, f.AllowedNames = true, append([]string{frontProxyName}, f.AllowedNames...)
	standard := authn.StandardProxyHeaders()
	for _, header := range []struct{ given, standard *[]string }{
		{&f.Headers.Username, &standard.Username}, {&f.Headers.UID, &standard.UID},
		{&f.Headers.Group, &standard.Group}, {&f.Headers.ExtraPrefix, &standard.ExtraPrefix},
	} {
		if len(*header.given) == 0 {
			*header.given = *header.standard
		}
	}
	return f
}

// said says which proxies are believed, of those with a certificate to trust.
func (f *FrontProxy) said() authn.Proxies {
	return authn.Proxies{AllowedNames: f.AllowedNames, Headers: f.Headers}
}

// check reports values that mean nothing, and headers without which other servers are not
// told whose a request is.
func (f *FrontProxy) check(clientCAFile string, log *slog.Logger) error {
	var errs []error
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

// checkAuthorities reports authorities whose certificates make everybody a proxy who has one
// for themselves.
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
		return nil // is said elsewhere
	}
	if pki.NewAuthorities(clients...).Shares(pki.NewAuthorities(proxies...)) {
		return errors.New("--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be specified to ensure regular client certificates cannot set authenticating proxy headers for arbitrary users")
	}
	return nil
}

// authorities returns those that sign the certificates of proxies, as they are when it is
// called, or nil if there are none. The second result is the certificate of this server where it
// is a proxy in front of other API servers, or nil.
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

// certificate returns the one that was given for this server as a proxy, or nil.
func (f *FrontProxy) certificate(log *slog.Logger) (func() *tls.Certificate, error) {
	if f.CertFile == "" || f.KeyFile == "" { // one alone counts for nothing, as in Kubernetes
		return nil, nil
	}
	given, err := pki.LoadCertificate(f.CertFile, f.KeyFile, log)
	if err != nil {
		return nil, err
	}
	return given.Get, nil
}
