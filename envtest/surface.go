package envtest

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// These are the types of controller-runtime.
type (
	// ControlPlane configures the server, by the flags of its APIServer.
	ControlPlane = envtest.ControlPlane
	// APIServer has the flags of the server, and its address.
	APIServer = envtest.APIServer
	// Etcd is accepted, and has no effect.
	Etcd = envtest.Etcd
	// User is a user to add.
	User = envtest.User
	// AuthenticatedUser is a user that was added.
	AuthenticatedUser = envtest.AuthenticatedUser
	// ListenAddr is the address of a server.
	ListenAddr = envtest.ListenAddr
	// SecureServing configures the TLS listener of the server.
	SecureServing = envtest.SecureServing
	// Authn adds users to the server.
	Authn = envtest.Authn
	// Arguments are the flags of a program.
	Arguments = envtest.Arguments
	// Arg is the value of a flag.
	Arg = envtest.Arg
	// CRDInstallOptions select the CustomResourceDefinitions to install.
	CRDInstallOptions = envtest.CRDInstallOptions
	// WebhookInstallOptions select the admission webhooks to install.
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
	// DefaultBinaryAssetsIndexURL is the index of controller-runtime's downloads. This package
	// downloads nothing.
	DefaultBinaryAssetsIndexURL = envtest.DefaultBinaryAssetsIndexURL
	// DefaultKubeAPIServerFlags are flags of an old kube-apiserver.
	//
	// Deprecated: use APIServer.Configure.
	//
	//lint:ignore SA1019 it is part of the surface
	DefaultKubeAPIServerFlags = envtest.DefaultKubeAPIServerFlags
)

// CreateCRDs creates or updates CustomResourceDefinitions.
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

// SetupEnvtestDefaultBinaryAssetsDirectory returns the folder in which setup-envtest stores programs,
// such as kubectl.
func SetupEnvtestDefaultBinaryAssetsDirectory() (string, error) {
	return envtest.SetupEnvtestDefaultBinaryAssetsDirectory()
}
