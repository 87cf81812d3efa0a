package envtest

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// These are the types of controller-runtime.
type (
	// ControlPlane says how the server is started: by the flags of its APIServer.
	ControlPlane = envtest.ControlPlane
	// APIServer has the flags of the server, and where it listens.
	APIServer = envtest.APIServer
	// Etcd is accepted, and means nothing.
	Etcd = envtest.Etcd
	// User is somebody who can be added.
	User = envtest.User
	// AuthenticatedUser is somebody who was added.
	AuthenticatedUser = envtest.AuthenticatedUser
	// ListenAddr is where a server listens.
	ListenAddr = envtest.ListenAddr
	// SecureServing says how the server serves.
	SecureServing = envtest.SecureServing
	// Authn makes users known to the server.
	Authn = envtest.Authn
	// Arguments are the flags of a program.
	Arguments = envtest.Arguments
	// Arg is the value of a flag.
	Arg = envtest.Arg
	// CRDInstallOptions say which CustomResourceDefinitions to install.
	CRDInstallOptions = envtest.CRDInstallOptions
	// WebhookInstallOptions say which admission webhooks to install.
	WebhookInstallOptions = envtest.WebhookInstallOptions
)

// These are the values of controller-runtime.
const (
	StartTimeout = envtest.StartTimeout
	StopTimeout  = envtest.StopTimeout
)

var (
	// EmptyArguments returns no flags.
	EmptyArguments = envtest.EmptyArguments
	// DefaultBinaryAssetsIndexURL is where programs could be downloaded. Nothing is.
	DefaultBinaryAssetsIndexURL = envtest.DefaultBinaryAssetsIndexURL
	// DefaultKubeAPIServerFlags are flags of a kube-apiserver of long ago.
	//
	// Deprecated: use APIServer.Configure.
	//lint:ignore SA1019 it is part of the surface
	DefaultKubeAPIServerFlags = envtest.DefaultKubeAPIServerFlags
)

// CreateCRDs creates CustomResourceDefinitions, or updates those that there are.
func CreateCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	return envtest.CreateCRDs(config, crds)
}

// InstallCRDs reads CustomResourceDefinitions, creates them, and waits until they are served.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return envtest.InstallCRDs(config, options)
}

// ReadCRDFiles adds to options.CRDs what is in the files of options.Paths.
func ReadCRDFiles(options *CRDInstallOptions) error { return envtest.ReadCRDFiles(options) }

// UninstallCRDs deletes CustomResourceDefinitions.
func UninstallCRDs(config *rest.Config, options CRDInstallOptions) error {
	return envtest.UninstallCRDs(config, options)
}

// WaitForCRDs waits until CustomResourceDefinitions are served.
func WaitForCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition, options CRDInstallOptions) error {
	return envtest.WaitForCRDs(config, crds, options)
}

// WaitForWebhooks waits until the configurations of webhooks can be read.
func WaitForWebhooks(config *rest.Config,
	mutatingWebhooks []*admissionv1.MutatingWebhookConfiguration,
	validatingWebhooks []*admissionv1.ValidatingWebhookConfiguration,
	options WebhookInstallOptions,
) error {
	return envtest.WaitForWebhooks(config, mutatingWebhooks, validatingWebhooks, options)
}

// SetupEnvtestDefaultBinaryAssetsDirectory returns where setup-envtest keeps programs, among which
// kubectl is looked for.
func SetupEnvtestDefaultBinaryAssetsDirectory() (string, error) {
	return envtest.SetupEnvtestDefaultBinaryAssetsDirectory()
}
