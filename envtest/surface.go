package envtest

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// The types of controller-runtime.
type (
	// ControlPlane configures the server by the flags of its APIServer.
	ControlPlane = envtest.ControlPlane
	// APIServer has the flags and the address of the server.
	APIServer = envtest.APIServer
	// Etcd is accepted without effect.
	Etcd = envtest.Etcd
	// User is a user to add.
	User = envtest.User
	// AuthenticatedUser is an added user with credentials.
	AuthenticatedUser = envtest.AuthenticatedUser
	// ListenAddr is the address of a server.
	ListenAddr = envtest.ListenAddr
	// SecureServing is the TLS configuration of the server.
	SecureServing = envtest.SecureServing
	// Authn adds users to the server.
	Authn = envtest.Authn
	// Arguments are the flags of a program.
	Arguments = envtest.Arguments
	// Arg is the value of a flag.
	Arg = envtest.Arg
	// CRDInstallOptions selects CustomResourceDefinitions to install.
	CRDInstallOptions = envtest.CRDInstallOptions
	// WebhookInstallOptions selects admission webhooks to install.
	WebhookInstallOptions = envtest.WebhookInstallOptions
)

// The values of controller-runtime.
const (
	StartTimeout = envtest.StartTimeout
	StopTimeout  = envtest.StopTimeout
)

var (
	// EmptyArguments returns no flags.
	EmptyArguments = envtest.EmptyArguments
	// DefaultBinaryAssetsIndexURL is the download index of controller-runtime. This package
	// downloads nothing.
	DefaultBinaryAssetsIndexURL = envtest.DefaultBinaryAssetsIndexURL
	// DefaultKubeAPIServerFlags are flags of an old kube-apiserver.
	//
	// Deprecated: use APIServer.Configure.
	//
	//lint:ignore SA1019 it is part of the surface
	DefaultKubeAPIServerFlags = envtest.DefaultKubeAPIServerFlags
)

// CreateCRDs creates CustomResourceDefinitions, or updates existing ones.
func CreateCRDs(config *rest.Config, crds []*apiextensionsv1.CustomResourceDefinition) error {
	return envtest.CreateCRDs(config, crds)
}

// InstallCRDs reads CustomResourceDefinitions, creates them, and waits until they are served.
func InstallCRDs(config *rest.Config, options CRDInstallOptions) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return envtest.InstallCRDs(config, options)
}

// ReadCRDFiles adds the definitions in the files of options.Paths to options.CRDs.
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

// SetupEnvtestDefaultBinaryAssetsDirectory returns the directory of setup-envtest, which may
// contain kubectl.
func SetupEnvtestDefaultBinaryAssetsDirectory() (string, error) {
	return envtest.SetupEnvtestDefaultBinaryAssetsDirectory()
}
