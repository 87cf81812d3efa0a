package app

import (
	"crypto/tls"
	"fmt"

	"github.com/anykind/anykind/internal/access/audit"
	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/oidc"
	"github.com/anykind/anykind/internal/access/authz/chain"
	"github.com/anykind/anykind/internal/admission"
	"github.com/anykind/anykind/internal/network/egress"
	"github.com/anykind/anykind/internal/network/kubeconfig"
	"github.com/anykind/anykind/internal/network/otlp"
	"github.com/anykind/anykind/internal/network/pki"
	"github.com/anykind/anykind/internal/network/review"
)

// files are the parsed and validated files of the options.
type files struct {
	certificate *pki.Reloaded[*tls.Certificate] // nil to generate one
	named       func(*tls.ClientHelloInfo) *tls.Certificate
	tokens      *authn.TokenFile
	issuers     *oidc.Config   // of JSON web tokens; nil without issuers
	webhook     *review.Client // for tokens; nil without a webhook

	authorization *chain.Config
	delegated     *delegated        // to the extended cluster; nil if this server authenticates
	admission     map[string][]byte // configurations of plugins, by name
	encryption    encryption
	audit         *audit.Config       // nil for no audit log
	traces        *otlp.Configuration // nil for no traces
}

// readFiles reads the files of the options, without side effects. to dials the webhooks in the
// files.
func readFiles(o Options, to *egress.Dialer) (f files, err error) {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return f, fmt.Errorf("serving certificate: want both a certificate file (%q) and a key file (%q)", o.CertFile, o.KeyFile)
	}
	if o.CertFile != "" {
		if f.certificate, err = pki.LoadCertificate(o.CertFile, o.KeyFile, o.Log); err != nil {
			return f, err
		}
	}
	if f.named, err = pki.LoadNamed(o.NamedCertificates, o.Log); err != nil {
		return f, err
	}
	if o.ClientCAFile != "" {
		if _, err = pki.LoadAuthorities(o.ClientCAFile); err != nil {
			return f, err
		}
	}
	if o.TokenFile != "" {
		if err := f.readTokens(o); err != nil {
			return f, err
		}
	}
	if f.issuers, err = o.Authentication.config(o.ServiceAccounts.IssuersOf(), o.Gates); err != nil {
		return f, err
	}
	if f.webhook, err = o.Authentication.Webhook.open(to, o.Log); err != nil {
		return f, err
	}
	if f.authorization, err = o.authorizationConfig(); err != nil {
		return f, err
	}
	if f.admission, err = admission.ReadConfiguration(o.Admission.ConfigFile); err != nil {
		return f, err
	}
	if f.encryption, err = o.Encryption.read(o.Gates, o.Log); err != nil {
		return f, err
	}
	if f.audit, err = audit.Read(o.Audit, o.Log); err != nil {
		return f, err
	}
	if f.traces, err = otlp.Read(o.TracingFile); err != nil {
		return f, err
	}
	if o.Kubeconfig == "" {
		return f, nil
	}
	return f, kubeconfig.CheckWritable(o.Kubeconfig)
}

func (f *files) readTokens(o Options) error {
	tokens, warnings, err := authn.LoadTokenFile(o.TokenFile)
	if err != nil {
		return fmt.Errorf("tokens: %w", err)
	}
	f.tokens = tokens
	for _, w := range warnings {
		o.Log.Warn(w)
	}
	return nil
}
