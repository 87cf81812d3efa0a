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

// Environment is an API server with what a test needs in it. The fields up to
// AttachControlPlaneOutput are those of controller-runtime.
type Environment struct {
	// ControlPlane says how the server is started. Its APIServer.Configure takes the flags of
	// kube-apiserver.
	ControlPlane ControlPlane

	// Scheme says which of the definitions convert their versions by a webhook: those of types that
	// implement Hub and Convertible. Nil is scheme.Scheme.
	Scheme *runtime.Scheme

	// Config is how an administrator reaches the server. Start sets it. With an existing cluster it
	// may be set before.
	Config *rest.Config

	// KubeConfig is a kubeconfig file for Config. Start sets it if it is empty.
	KubeConfig []byte

	// CRDInstallOptions say which CustomResourceDefinitions to install.
	CRDInstallOptions CRDInstallOptions

	// WebhookInstallOptions say which admission webhooks to install.
	WebhookInstallOptions WebhookInstallOptions

	// ErrorIfCRDPathMissing makes it an error that there is no file or directory at one of the paths.
	ErrorIfCRDPathMissing bool

	// CRDs are installed besides those of CRDInstallOptions. Start sets it to all that it installed.
	CRDs []*apiextensionsv1.CustomResourceDefinition

	// CRDDirectoryPaths are files and directories of CustomResourceDefinitions to install besides
	// those of CRDInstallOptions.
	CRDDirectoryPaths []string

	// DownloadBinaryAssets and the next two mean nothing: no program is needed.
	DownloadBinaryAssets         bool
	DownloadBinaryAssetsVersion  string
	DownloadBinaryAssetsIndexURL string

	// BinaryAssetsDirectory may have a kubectl, for AuthenticatedUser.Kubectl.
	BinaryAssetsDirectory string

	// UseExistingCluster starts no server, and uses the one of Config or, without one, of the current
	// kubeconfig. Nil leaves it to the environment variable USE_EXISTING_CLUSTER.
	UseExistingCluster *bool

	// ControlPlaneStartTimeout is how long the server may take to start. Zero leaves it to the
	// environment variable KUBEBUILDER_CONTROLPLANE_START_TIMEOUT, or is 20 seconds.
	ControlPlaneStartTimeout time.Duration

	// ControlPlaneStopTimeout is how long requests may take to finish when the server stops. Zero
	// leaves it to KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT, or is 20 seconds.
	ControlPlaneStopTimeout time.Duration

	// AttachControlPlaneOutput has the server log to the standard error of the test.
	AttachControlPlaneOutput bool

	// Controllers are the names of controllers of kube-controller-manager that run: "*" for all, or
	// such as "namespace-controller". Nil leaves it to the environment variable ANYKIND_CONTROLLERS,
	// or is none.
	Controllers []string

	// From is what the server holds at first, taken from another one. Installing what is there already
	// is not needed, but does no harm. WebhookInstallOptions are left alone unless they say something.
	From *Snapshot

	// InMemory has clients reach the server without a socket, by the Dial of their configs. It is for
	// tests in a bubble of testing/synctest, where a socket stops the time. Nobody else can reach the
	// server, so that its KubeConfig is of no use, and it reaches no webhooks.
	InMemory bool

	server *server
}

// Start starts the server, installs what is to be installed, and returns how an administrator
// reaches it.
func (te *Environment) Start() (*rest.Config, error) {
	if te.useExistingCluster() {
		return te.install()
	}
	if te.server != nil {
		return nil, errors.New("the environment was started already; stop it first, or start another one")
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
		return te.Config, errors.New("a server in memory reaches no webhooks: they listen on sockets")
	case te.InMemory || te.From != nil && !hooks:
		return te.Config, te.installCRDs()
	default:
		return te.install()
	}
}

// StartFor starts the Environment for a test, which fails if that is not possible, and stops it when
// the test has ended.
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

// Stop stops the server. CustomResourceDefinitions are deleted first if
// CRDInstallOptions.CleanUpAfterUse says so. An Environment that was stopped can be started again.
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

// AddUser adds a user, who has the groups and no other rights. The config that users get begins as a
// copy of baseConfig.
func (te *Environment) AddUser(user User, baseConfig *rest.Config) (*AuthenticatedUser, error) {
	return te.ControlPlane.AddUser(user, baseConfig)
}

// installsWebhooks reports whether there may be webhooks to install or to convert by.
func (te *Environment) installsWebhooks() bool {
	hooks := &te.WebhookInstallOptions
	return len(hooks.Paths)+len(hooks.MutatingWebhooks)+len(hooks.ValidatingWebhooks) > 0 || hooks.LocalServingPort != 0
}

// installCRDs installs what is to be installed where there are no webhooks.
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

// existing is the Environment to controller-runtime, to which the server exists.
func (te *Environment) existing() *envtest.Environment {
	exists := true
	return &envtest.Environment{
		Scheme: te.Scheme, Config: te.Config, KubeConfig: te.KubeConfig,
		CRDInstallOptions: te.CRDInstallOptions, WebhookInstallOptions: te.WebhookInstallOptions,
		ErrorIfCRDPathMissing: te.ErrorIfCRDPathMissing, CRDs: te.CRDs, CRDDirectoryPaths: te.CRDDirectoryPaths,
		UseExistingCluster: &exists,
	}
}

// install has controller-runtime install what is to be installed, as in a cluster.
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

// timeout returns how long something may take: what was said, what the environment says, or what
// controller-runtime has.
func timeout(said time.Duration, variable string) (time.Duration, error) {
	if value := os.Getenv(variable); said == 0 && value != "" {
		return time.ParseDuration(value)
	}
	if said == 0 {
		said = 20 * time.Second
	}
	return said, nil
}
