package app

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/anykind/anykind/internal/access/authn"
	"github.com/anykind/anykind/internal/access/authn/serviceaccount"
	"github.com/anykind/anykind/internal/access/authn/serviceaccount/external"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/legacytoken"
	"github.com/anykind/anykind/internal/controller/serviceaccounttoken"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/server/openapi"
)

// serviceAccounts has the signer and the authenticator of service account tokens.
type serviceAccounts struct {
	options serviceaccount.Options
	keys    serviceaccount.Keys // nil before open, if none are configured
	issuer  *serviceaccount.Issuer
	metrics *serviceaccount.Metrics
	signer  *external.Signer // nil without an external signer

	cleanUpPeriod time.Duration
}

// newServiceAccounts reads the files of the options, without side effects.
func newServiceAccounts(o Options) (*serviceAccounts, error) {
	keys, err := o.ServiceAccounts.Read()
	if err != nil {
		return nil, err
	}
	o.ServiceAccounts.Warn(o.Log)
	if o.LegacyTokenCleanUpPeriod < 0 {
		return nil, fmt.Errorf("invalid CleanUpPeriod: %v", o.LegacyTokenCleanUpPeriod)
	}
	return &serviceAccounts{
		options: o.ServiceAccounts, keys: keys, issuer: serviceaccount.NewIssuer(o.ServiceAccounts), metrics: serviceaccount.NewMetrics(),
		cleanUpPeriod: cmp.Or(o.LegacyTokenCleanUpPeriod, legacytoken.DefaultPeriod),
	}, nil
}

// open reads or generates keys in the data directory, if none are configured.
func (s *serviceAccounts) open(ctx context.Context, a *App, o Options) (err error) {
	switch {
	case s.options.SigningEndpoint != "":
		err = s.connect(ctx, a, o)
	case s.keys == nil:
		dir := ""
		if o.Dir != "" {
			dir = filepath.Join(o.Dir, credentials)
		}
		s.keys, err = serviceaccount.OpenKeys(dir)
	}
	if err == nil {
		s.issuer.Use(s.keys)
	}
	return err
}

// forked returns the signer and authenticator of a fork. The tokens of the server are valid in the fork, and those
// of the fork nowhere else.
func (s *serviceAccounts) forked() (*serviceAccounts, error) {
	f := &serviceAccounts{options: s.options, issuer: serviceaccount.NewIssuer(s.options), metrics: serviceaccount.NewMetrics(), cleanUpPeriod: s.cleanUpPeriod}
	f.options.SigningEndpoint = ""
	var err error
	if f.keys, err = serviceaccount.Beside(s.keys); err == nil {
		f.issuer.Use(f.keys)
	}
	return f, err
}

// connect fetches the keys of the external signer.
func (s *serviceAccounts) connect(ctx context.Context, a *App, o Options) (err error) {
	if s.signer, err = external.Open(s.options.SigningEndpoint); err != nil {
		return err
	}
	a.later(func(context.Context) error { return s.signer.Close() })
	keys, err := serviceaccount.Connect(ctx, s.options, s.signer, o.Log)
	if err != nil {
		return err
	}
	s.keys = keys
	a.parts.run("keys of the external signer", keys.Refresh)
	return nil
}

// authenticator returns the authenticator of service account tokens.
func (s *serviceAccounts) authenticator(w *wired, o Options, core *resource.Set) authn.TokenAuthenticator {
	secrets := core.Lookup("", "secrets")
	return serviceaccount.NewAuthenticator(s.options, serviceaccount.Dependencies{
		Keys: s.keys, Cache: w.cache, Metrics: s.metrics, Log: o.Log,
		Accounts: core.Lookup("", "serviceaccounts"), Secrets: secrets, Pods: core.Lookup("", "pods"), Nodes: core.Lookup("", "nodes"),
		ValidatingWebhooks: core.Lookup(admissionregistrationv1.GroupName, "validatingwebhookconfigurations"),
		MutatingWebhooks:   core.Lookup(admissionregistrationv1.GroupName, "mutatingwebhookconfigurations"),
		Gates:              o.Gates,
		Use: func(ctx context.Context, namespace, name, uid, day string) error {
			objects := controller.Objects{Backend: w.backend, Catalog: w.catalog, Registry: w.registry, Manager: apply.Server}
			return objects.Change(ctx, secrets, secrets.Key(namespace, name), uid, "", func(t object.Tree) bool {
				return serviceaccount.Label(t, serviceaccount.LastUsedLabel, day)
			})
		},
	})
}

// controllers returns the controllers of tokens in Secrets. ca is the CA of the server. An external
// signer signs no such tokens.
func (s *serviceAccounts) controllers(ca []byte) []controller.Descriptor {
	cleaner := controller.Descriptor{Name: legacytoken.Name, Alias: "legacy-service-account-token-cleaner", New: legacytoken.New(s.cleanUpPeriod)}
	if s.options.SigningEndpoint != "" {
		return []controller.Descriptor{cleaner}
	}
	return []controller.Descriptor{
		{Name: serviceaccounttoken.Name, Alias: "serviceaccount-token", New: serviceaccounttoken.New(s.issuer, ca)},
		cleaner,
	}
}

// discovery returns the OpenID Connect discovery of the issuer.
func (s *serviceAccounts) discovery(w *wired) *serviceaccount.Discovery {
	d, err := serviceaccount.NewDiscovery(s.options, s.keys, w.server.Address.String())
	if err != nil {
		w.log.Error("Could not construct pre-rendered responses for ServiceAccountIssuerDiscovery endpoints. Endpoints will not be enabled.", "error", err)
	}
	return d
}

// pages are the names of the OpenAPI documents about discovery.
func pages(d *serviceaccount.Discovery) []string {
	if len(d.Paths()) == 0 {
		return nil
	}
	return []string{openapi.IssuerConfiguration, openapi.IssuerKeys}
}
