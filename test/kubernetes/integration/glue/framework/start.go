//go:build copied

// Package framework is copied into the published package of that name, in which StartTestServer is
// renamed to startPublished.
package framework

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	client "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	"k8s.io/kubernetes/pkg/controlplane"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
	"k8s.io/kubernetes/test/e2e/invariants/metrics"
	"k8s.io/kubernetes/test/utils"

	"github.com/anykind/anykind/test/kubernetes/integration/server"
)

// StartTestServer starts a process if the environment names a program.
func StartTestServer(ctx context.Context, t testing.TB, setup TestServerSetup) (client.Interface, *rest.Config, TearDownFunc) {
	if !server.Wanted() {
		return startPublished(ctx, t, setup)
	}
	dir, err := os.MkdirTemp("", "anykind-"+strings.ReplaceAll(t.Name(), "/", "_"))
	if err != nil {
		t.Fatal(err)
	}
	o := options.NewServerRunOptions()
	sets := o.Flags()
	usual(t, dir, o)
	if setup.ModifyServerRunOptions != nil {
		setup.ModifyServerRunOptions(o)
	}
	changed, stopReviews := configured(t, setup, dir, o)
	flags := slices.Concat(server.Flags(sets), server.Gates(utilfeature.DefaultMutableFeatureGate), changed)
	s, err := server.Start(dir, "", o.Authentication.TokenFile.TokenFile, true, flags)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.CopyConfig(s.Config)
	config.CAFile, config.CAData = s.CertFile, nil
	c, err := client.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c, config, func() {
		if !setup.DisableInvariantChecks && ctx.Err() == nil {
			checkMetrics(ctx, t, s.Config)
		}
		s.Stop()
		stopReviews()
		os.RemoveAll(dir)
	}
}

// checkMetrics checks metrics that indicate defects. The test may have given the server another
// certificate.
func checkMetrics(ctx context.Context, t testing.TB, config *rest.Config) {
	config = rest.CopyConfig(config)
	config.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	c, err := client.NewForConfig(config)
	if err == nil {
		err = metrics.CheckMetricInvariants(ctx, c, false)
	}
	if err != nil {
		t.Errorf("metrics: %v", err)
	}
}

// usual sets the options of a test server.
func usual(t testing.TB, dir string, o *options.ServerRunOptions) {
	key := filepath.Join(dir, "service-account.key")
	if err := os.WriteFile(key, []byte(ecdsaPrivateKey), 0o600); err != nil {
		t.Fatal(err)
	}
	authority := func(name string) string {
		key, err := utils.NewPrivateKey()
		if err != nil {
			t.Fatal(err)
		}
		made, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name+".crt")
		if err := os.WriteFile(file, utils.EncodeCertPEM(made), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	o.SecureServing.ServerCert.CertDirectory = dir
	o.ServiceAccountSigningKeyFile = key
	o.Etcd.StorageConfig.Prefix = "/" + uuid.NewString() + "/registry"
	o.Etcd.StorageConfig.Transport.ServerList = []string{GetEtcdURL()}
	o.ServiceClusterIPRanges = "10.0.0.0/24"
	o.GenericServerRunOptions.AdvertiseAddress = net.IPv4(192, 0, 2, 1) // its listen address may not be valid as an endpoint
	who := o.Authentication
	who.RequestHeader.UsernameHeaders = []string{"X-Remote-User"}
	who.RequestHeader.GroupHeaders = []string{"X-Remote-Group"}
	who.RequestHeader.ExtraHeaderPrefixes = []string{"X-Remote-Extra-"}
	who.RequestHeader.AllowedNames = []string{"kube-aggregator"}
	who.RequestHeader.ClientCAFile = authority("proxy-ca")
	who.APIAudiences = []string{"https://foo.bar.example.com"}
	who.ServiceAccounts.Issuers = []string{"https://foo.bar.example.com"}
	who.ServiceAccounts.KeyFiles = []string{key}
	who.ClientCert.ClientCA = authority("client-ca")
	o.Authorization.Modes = []string{"Node", "RBAC"}
}

// configured returns flags for the server configuration of a test. An authenticator and an authorizer
// become webhooks. Most other code cannot move into another process.
func configured(t testing.TB, setup TestServerSetup, dir string, o *options.ServerRunOptions) (flags []string, stop func()) {
	stop = func() {}
	if setup.ModifyServerConfig == nil {
		return nil, stop
	}
	generic := &genericapiserver.Config{LoopbackClientConfig: &rest.Config{}}
	generic.Authorization.Authorizer = leftToServer{func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", nil
	}}
	config := &controlplane.Config{ControlPlane: controlplaneapiserver.Config{Generic: generic}}
	defer func() {
		if wrong := recover(); wrong != nil {
			t.Fatalf("outside: the test changes the inside of the server: %v", wrong)
		}
	}()
	setup.ModifyServerConfig(config)
	r := server.Reviews{Authenticator: generic.Authentication.Authenticator}
	if _, left := generic.Authorization.Authorizer.(leftToServer); !left {
		r.Authorizer = generic.Authorization.Authorizer
	}
	if r.Authenticator != nil || r.Authorizer != nil {
		stop = reviewed(t, r, dir, o)
	}
	wanted, _ := config.ControlPlane.APIResourceConfigSource.(*serverstorage.ResourceConfig)
	flags = server.Served(wanted)
	if generic.AdmissionControl != nil {
		// The tests replace all admission plugins by ones that the server has. Of the others, only
		// ServiceAccount would affect their pods: each would need a ServiceAccount.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	return flags, stop
}

// leftToServer is the authorizer of a server, for tests that add another one.
type leftToServer struct{ authorizer.AuthorizerFunc }

// reviewed configures webhooks by which the server calls a test's authenticator, and its authorizer
// before all others.
func reviewed(t testing.TB, r server.Reviews, dir string, o *options.ServerRunOptions) (stop func()) {
	file, stop, err := r.Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.Authenticator != nil {
		hook := o.Authentication.WebHook
		hook.ConfigFile, hook.Version, hook.CacheTTL = file, "v1", 0
	}
	if r.Authorizer != nil {
		who := o.Authorization
		who.Modes = append([]string{"Webhook"}, who.Modes...)
		who.WebhookConfigFile, who.WebhookVersion = file, "v1"
		who.WebhookCacheAuthorizedTTL, who.WebhookCacheUnauthorizedTTL = 0, 0
	}
	return stop
}
