package envtest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Environment is an API server for a test, with its definitions and webhooks. The fields up to
// AttachControlPlaneOutput are those of controller-runtime.
type Environment struct {
	// ControlPlane configures the server. APIServer.Configure sets flags of kube-apiserver.
	ControlPlane ControlPlane

	// Scheme selects definitions with a conversion webhook: those with types that implement Hub and
	// Convertible. Nil is scheme.Scheme.
	Scheme *runtime.Scheme

	// Config is the client configuration of an administrator. Start sets it. With an existing
	// cluster, it can be set before.
	Config *rest.Config

	// KubeConfig is a kubeconfig file for Config. Start sets it if it is empty.
	KubeConfig []byte

	// CRDInstallOptions selects CustomResourceDefinitions to install.
	CRDInstallOptions CRDInstallOptions

	// WebhookInstallOptions selects admission webhooks to install.
	WebhookInstallOptions WebhookInstallOptions

	// ErrorIfCRDPathMissing fails Start if one of the paths does not exist.
	ErrorIfCRDPathMissing bool

	// CRDs are installed besides those of CRDInstallOptions. Start sets it to all installed
	// definitions.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// CRDDirectoryPaths are files and directories of CustomResourceDefinitions to install besides
	// those of CRDInstallOptions.
	CRDDirectoryPaths []string

	// DownloadBinaryAssets and the next two fields have no effect: no program is needed.
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string

	// BinaryAssetsDirectory can contain kubectl, for AuthenticatedUser.Kubectl.
	BinaryAssetsDirectory string

	// UseExistingCluster uses the server of Config or, without one, of the current kubeconfig, and
	// starts none. Nil is the value of the environment variable USE_EXISTING_CLUSTER.
	UseExistingCluster *bool

	// ControlPlaneStartTimeout limits the start of the server. Zero is the value of the environment
	// variable KUBEBUILDER_CONTROLPLANE_START_TIMEOUT, or 20 seconds.
	ControlPlaneStartTimeout time.Duration

	// ControlPlaneStopTimeout limits requests in progress when the server stops. Zero is the value
	// of KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT, or 20 seconds.
	ControlPlaneStopTimeout time.Duration

	// AttachControlPlaneOutput writes the log of the server to standard error of the test.
	AttachControlPlaneOutput bool

	// Version is the release of Kubernetes that the server emulates, such as "1.35": its kinds, feature gates and
	// defaults. Empty is the newest one that the module implements.
	Version string

	// Controllers are the controllers of kube-controller-manager to run, such as
	// "namespace-controller", or "*" for all. Nil is the value of the environment variable
	// ANYKIND_CONTROLLERS, or none.
	Controllers []string

	// From is a Snapshot of another server to start from. Definitions of the Snapshot can be
	// installed again, but need not be. Empty WebhookInstallOptions stay empty.
	From *Snapshot

	// InMemory connects clients to the server without a socket, by the Dial of their configs. It is
	// for tests in a bubble of testing/synctest, where a socket stops the clock. Other processes
	// cannot connect to the server, so its KubeConfig is useless, and it cannot call webhooks.
	InMemory bool

	server *server
}

// Start starts the server, installs definitions and webhooks, and returns the client configuration
// of an administrator.
func (te *Environment) Start() (*rest.Config, error) {
	if te.useExistingCluster() {
		return te.install()
	}
	if te.server != nil {
		return nil, errors.New("the environment is started already: stop it first, or start another one")
	}
	started, err := te.startServer()
	if err != nil {
		return nil, fmt.Errorf("unable to start control plane itself: %w", err)
	}
	te.server = started
	admin, err := te.AddUser(User{Name: "admin", Groups: []string{"system:masters"}}, &rest.Config{QPS: 1000, Burst: 2000})
	if err != nil {
		return nil, fmt.Errorf("unable to provision admin user: %w", err)
	}
	te.Config = admin.Config()
	if len(te.KubeConfig) == 0 {
		if te.KubeConfig, err = admin.KubeConfig(); err != nil {
			return nil, fmt.Errorf("unable to set KubeConfig field: %w", err)
		}
	}
	switch hooks := te.installsWebhooks(); {
	case te.InMemory && hooks:
		return te.Config, errors.New("a server in memory cannot call webhooks, which listen on sockets")
	case te.InMemory || te.From != nil && !hooks:
		return te.Config, te.installCRDs()
	default:
		return te.install()
	}
}

// StartFor starts the Environment for a test and stops it at the end of the test. If the start
// fails, the test fails.
func (te *Environment) StartFor(t testing.TB) *rest.Config {
	t.Helper()
	config, err := te.Start()
	t.Cleanup(func() {
		if err := te.Stop(); err != nil {
			t.Errorf("stopping the environment: %v", err)
		}
	})
	if err != nil {
		t.Fatalf("starting the environment: %v", err)
	}
	return config
}

// Stop stops the server. With CRDInstallOptions.CleanUpAfterUse, it deletes
// CustomResourceDefinitions first. A stopped Environment can be started again.
func (te *Environment) Stop() error {
	if te.useExistingCluster() || te.CRDInstallOptions.CleanUpAfterUse && te.Config != nil {
		existing := te.existing()
		err := existing.Stop()
		if te.useExistingCluster() || err != nil {
			return err
		}
	}
	return errors.Join(te.WebhookInstallOptions.Cleanup(), te.stopServer())
}

// AddUser adds a user with groups and no other rights. The config of the user is a copy of
// baseConfig with credentials.
func (te *Environment) AddUser(user User, baseConfig *rest.Config) (*AuthenticatedUser, error) {
	return te.ControlPlane.AddUser(user, baseConfig)
}

// installsWebhooks reports whether the options can have admission or conversion webhooks.
func (te *Environment) installsWebhooks() bool {
	hooks := &te.WebhookInstallOptions
	return len(hooks.Paths)+len(hooks.MutatingWebhooks)+len(hooks.ValidatingWebhooks) > 0 || hooks.LocalServingPort != 0
}

// installCRDs installs definitions of an Environment without webhooks.
func (te *Environment) installCRDs() (err error) {
	if te.Scheme == nil {
		te.Scheme = scheme.Scheme
	}
	options := &te.CRDInstallOptions
	if options.Scheme == nil {
		options.Scheme = te.Scheme
	}
	options.CRDs, options.Paths = append(options.CRDs, te.CRDs...), append(options.Paths, te.CRDDirectoryPaths...)
	options.ErrorIfPathMissing = te.ErrorIfCRDPathMissing
	if len(options.CRDs)+len(options.Paths) == 0 {
		return nil
	}
	if te.CRDs, err = InstallCRDs(te.Config, *options); err != nil {
		return fmt.Errorf("unable to install CRDs onto control plane: %w", err)
	}
	return nil
}

// existing is an Environment of controller-runtime that treats the server as an existing cluster.
func (te *Environment) existing() *envtest.Environment {
	exists := true
	return &envtest.Environment{
		Scheme: te.Scheme, Config: te.Config, KubeConfig: te.KubeConfig,
		CRDInstallOptions: te.CRDInstallOptions, WebhookInstallOptions: te.WebhookInstallOptions,
		ErrorIfCRDPathMissing: te.ErrorIfCRDPathMissing, CRDs: te.CRDs, CRDDirectoryPaths: te.CRDDirectoryPaths,
		UseExistingCluster: &exists,
	}
}

// install lets controller-runtime install definitions and webhooks, as in a cluster.
func (te *Environment) install() (*rest.Config, error) {
	existing := te.existing()
	config, err := existing.Start()
	te.Scheme, te.Config, te.KubeConfig = existing.Scheme, existing.Config, existing.KubeConfig
	te.CRDInstallOptions, te.WebhookInstallOptions, te.CRDs = existing.CRDInstallOptions, existing.WebhookInstallOptions, existing.CRDs
	return config, err
}

func (te *Environment) useExistingCluster() bool {
	if te.UseExistingCluster == nil {
		return strings.EqualFold(os.Getenv("USE_EXISTING_CLUSTER"), "true")
	}
	return *te.UseExistingCluster
}

// timeout returns a timeout: the field, the environment variable, or the default of
// controller-runtime.
func timeout(said time.Duration, variable string) (time.Duration, error) {
	if value := os.Getenv(variable); said == 0 && value != "" {
		return time.ParseDuration(value)
	}
	if said == 0 {
		said = 20 * time.Second
	}
	return said, nil
}
