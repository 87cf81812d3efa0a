//go:build copied

// Package testing is copied into the published package of that name, in which StartTestServer is
// renamed to startPublished.
package testing

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/compatibility"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/test/e2e/invariants/metrics"
	testutil "k8s.io/kubernetes/test/utils"
	"k8s.io/kubernetes/test/utils/ktesting"

	"github.com/anykind/anykind/test/kubernetes/integration/server"
)

// StartTestServer starts a process if the environment names a program.
func StartTestServer(t ktesting.TB, given *TestServerInstanceOptions, flags []string, store *storagebackend.Config) (TestServer, error) {
	if !server.Wanted() {
		return startPublished(t, given, flags, store)
	}
	if given == nil {
		given = NewDefaultTestServerOptions()
	}
	if given.StorageVersionWrapFunc != nil || given.BinaryVersion != "" && !server.Emulates(given.BinaryVersion) {
		t.Fatalf("outside: the test puts code into the server, or makes it one of a version that anykind does not emulate")
	}
	dir, err := os.MkdirTemp("", "anykind-apiserver")
	if err != nil {
		return TestServer{}, err
	}
	r, err := startProcess(t, dir, given, flags, store)
	if err != nil {
		os.RemoveAll(dir)
	}
	return r, err
}

func startProcess(t ktesting.TB, dir string, given *TestServerInstanceOptions, flags []string, store *storagebackend.Config) (TestServer, error) {
	o := options.NewServerRunOptions()
	o.Options.GenericServerRunOptions.ComponentGlobalsRegistry = registry(t)
	sets := o.Flags()
	all := pflag.NewFlagSet("test", pflag.PanicOnError)
	for _, set := range sets.FlagSets {
		all.AddFlagSet(set)
	}
	if v := o.GenericServerRunOptions.ComponentGlobalsRegistry.EffectiveVersionFor(compatibility.DefaultKubeComponent); !v.BinaryVersion().EqualTo(v.EmulationVersion()) {
		o.GenericServerRunOptions.RuntimeConfigEmulationForwardCompatible = true // a test may turn on a gate whose API version is newer
	}
	if given.RequestTimeout > 0 {
		o.GenericServerRunOptions.RequestTimeout = given.RequestTimeout
	}
	o.ServiceClusterIPRanges = "10.0.0.0/16"
	o.Etcd.StorageConfig = *store
	if given.EnableCertAuth {
		if err := certificates(dir, given, o); err != nil {
			return TestServer{}, err
		}
	}
	if err := all.Parse(flags); err != nil {
		return TestServer{}, err
	}
	if !all.Changed("advertise-address") && !all.Changed("endpoint-reconciler-type") {
		o.EndpointReconcilerType = "none"
	}
	// Without flags, Kubernetes allows all requests, and anykind does not: docs/differences.md.
	if who := o.Authorization; len(who.Modes) == 0 && who.AuthorizationConfigurationFile == "" {
		who.Modes = []string{"AlwaysAllow"}
	}
	key := filepath.Join(dir, "service-account.key")
	if err := os.WriteFile(key, []byte(ecdsaPrivateKey), 0o600); err != nil {
		return TestServer{}, err
	}
	o.ServiceAccountSigningKeyFile = key
	o.Authentication.ServiceAccounts.Issuers = []string{"https://foo.bar.example.com"}
	o.Authentication.ServiceAccounts.KeyFiles = []string{key}

	changed := gates(t, o)
	if given.EnableCertAuth && theirs(o.GenericServerRunOptions.ComponentGlobalsRegistry).Enabled(features.UnknownVersionInteroperabilityProxy) {
		o.PeerCAFile = filepath.Join(dir, "apiserver.crt")
		if err := certificate.write(dir); err != nil {
			return TestServer{}, err
		}
	}
	s, err := server.Start(dir, host(), o.Authentication.TokenFile.TokenFile, !given.SkipHealthzCheck, append(server.Flags(sets), changed...))
	if err != nil {
		return TestServer{}, fmt.Errorf("failed to start: %w", err)
	}
	if err := certificate.read(dir); err != nil {
		return TestServer{}, err
	}
	o.SecureServing.BindPort = s.Port
	o.SecureServing.ServerCert.CertDirectory, o.SecureServing.ServerCert.CertKey.CertFile = dir, s.CertFile
	client, err := kubernetes.NewForConfig(s.Config)
	if err != nil {
		return TestServer{}, err
	}
	etcd, _, err := GetEtcdClients(store.Transport)
	if err != nil {
		return TestServer{}, err
	}
	r := TestServer{ClientConfig: s.Config, ServerOpts: o, TmpDir: dir, EtcdClient: etcd, EtcdStoragePrefix: store.Prefix}
	r.TearDownFn = func() {
		if !given.DisableInvariantChecks {
			if err := metrics.CheckMetricInvariants(context.Background(), client, false); err != nil {
				t.Errorf("metrics: %v", err)
			}
		}
		_ = etcd.Close()
		s.Stop()
		os.RemoveAll(dir)
	}
	return r, nil
}

// gates sets the feature gates of the test process as the published file does, and returns the flags
// for them.
func gates(t ktesting.TB, o *options.ServerRunOptions) []string {
	known := o.GenericServerRunOptions.ComponentGlobalsRegistry
	if err := known.Set(); err != nil {
		t.Fatalf("gates: %v", err)
	}
	gates := theirs(known)
	if release, usual := gates.EmulationVersion(), utilfeature.DefaultMutableFeatureGate; !release.EqualTo(usual.EmulationVersion()) {
		featuregatetesting.SetFeatureGateVersionsDuringTest(t, usual, release, gates.MinCompatibilityVersion())
	}
	changed := featuregatetesting.FeatureOverrides{}
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if on := gates.Enabled(name); on != utilfeature.DefaultFeatureGate.Enabled(name) {
			changed[name] = on
		}
	}
	if len(changed) > 0 { // together, because they depend on each other
		featuregatetesting.SetFeatureGatesDuringTest(t, utilfeature.DefaultFeatureGate, changed)
	}
	return server.Gates(gates)
}

// certificates creates the CAs of clients and of other servers.
func certificates(dir string, given *TestServerInstanceOptions, o *options.ServerRunOptions) error {
	for _, authority := range []struct {
		name string
		made *ProxyCA
		file *string
	}{
		{"front-proxy-ca", given.ProxyCA, &o.Authentication.RequestHeader.ClientCAFile},
		{"client-ca", nil, &o.Authentication.ClientCert.ClientCA},
	} {
		made := authority.made
		if made == nil {
			key, err := testutil.NewPrivateKey()
			if err != nil {
				return err
			}
			certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: authority.name}, key)
			if err != nil {
				return err
			}
			made = &ProxyCA{ProxySigningCert: certificate, ProxySigningKey: key}
		}
		*authority.file = filepath.Join(dir, strings.TrimPrefix(authority.name, "front-")+".crt")
		if err := os.WriteFile(*authority.file, testutil.EncodeCertPEM(made.ProxySigningCert), 0o644); err != nil {
			return err
		}
		if authority.name == "front-proxy-ca" {
			if err := ownCertificate(dir, made, o); err != nil {
				return err
			}
		}
	}
	headers := o.Authentication.RequestHeader
	headers.AllowedNames = []string{"ash", "misty", "brock"}
	headers.UsernameHeaders, headers.GroupHeaders = []string{"x-remote-user"}, []string{"x-remote-group"}
	headers.ExtraHeaderPrefixes = []string{"x-remote-extra-"}
	return nil
}
