package main

// A suite is a module and its packages with envtest.
type suite struct {
	module string
	// built is the folder, below test/operators, of the module for the build of its tests.
	built    string
	packages []string
	// tags are the build tags of its tests.
	tags string
	// skip matches tests that download their programs instead of using KUBEBUILDER_ASSETS.
	skip string
	// folders are folders of other modules, by the environment variable that the tests read.
	folders map[string]folder
}

// A folder of a module.
type folder struct{ module, path string }

// The modules for the builds of the tests.
const (
	programs   = "programs"
	gatekeeper = "programs/gatekeeper"
	tested     = "programs/tested"
	kyverno    = "programs/kyverno"
	further    = "programs/further"
)

var suites = []suite{
	{module: "sigs.k8s.io/controller-runtime", built: programs, skip: "/aggregatedDiscovery=false", packages: []string{
		"pkg/builder", "pkg/cache", "pkg/client", "pkg/client/apiutil", "pkg/cluster", "pkg/controller",
		"pkg/controller/controllerutil", "pkg/envtest", "pkg/handler", "pkg/internal/controller",
		"pkg/internal/recorder", "pkg/internal/testing/controlplane", "pkg/manager",
		"pkg/manager/internal/integration", "pkg/metrics/filters", "pkg/reconcile", "pkg/source", "pkg/webhook",
	}},
	{module: "github.com/open-policy-agent/gatekeeper/v3", built: gatekeeper, packages: []string{
		"pkg/controller/config", "pkg/controller/connectionstatus",
		"pkg/controller/mutators/core", "pkg/readiness", "pkg/watch",
	}},
	{module: "github.com/open-policy-agent/frameworks/constraint", built: gatekeeper, packages: []string{
		"pkg/apis/externaldata/v1alpha1", "pkg/apis/externaldata/v1beta1",
		"pkg/apis/templates/v1", "pkg/apis/templates/v1alpha1", "pkg/apis/templates/v1beta1",
	}},
	{module: "github.com/open-policy-agent/cert-controller", built: gatekeeper, packages: []string{"pkg/rotator"}},
	{module: "sigs.k8s.io/cluster-api", built: tested, packages: []string{
		"bootstrap/kubeadm/reconcilers/kubeadmconfig",
		"controlplane/kubeadm/reconcilers/kubeadmcontrolplane",
		"controllers/crdmigrator", "core/reconcilers/clusterresourceset", "core/reconcilers/machinedeployment",
		"core/reconcilers/machineset", "internal/util/ssa/test", "util/patch/test",
	}},
	{module: "github.com/kedacore/keda/v2", built: tested, packages: []string{"apis/eventing/v1alpha1", "apis/keda/v1alpha1"}},
	{module: "sigs.k8s.io/karpenter", built: tested, packages: []string{
		"pkg/apis/v1", "pkg/controllers/nodeclaim/lifecycle", "pkg/controllers/nodepool/counter", "pkg/controllers/nodepool/hash",
		"pkg/controllers/provisioning/scheduling",
	}},
	{module: "github.com/fluxcd/pkg/ssa", built: tested, packages: []string{"."}},
	{module: "github.com/fluxcd/pkg/runtime", built: tested, packages: []string{"client", "controller", "events", "patch"}},
	{module: "github.com/kyverno/kyverno", built: kyverno, tags: "integration", packages: []string{
		"test/integration/dpol", "test/integration/gpol", "test/integration/mpol",
	}},
	{module: "github.com/cert-manager/approver-policy", built: further, packages: []string{
		"pkg/internal/approver/manager", "pkg/internal/approver/manager/predicate", "pkg/internal/controllers/test",
	}, folders: map[string]folder{"CERT_MANAGER_CRDS": {"github.com/cert-manager/cert-manager", "deploy/crds"}}},
	{module: "github.com/cert-manager/trust-manager", built: further, packages: []string{
		"test/integration/bundle", "test/integration/clusterbundle",
	}},
	{module: "github.com/elastic/cloud-on-k8s/v3", built: further, tags: "integration", packages: []string{
		"pkg/controller/common/watches", "pkg/controller/kibana", "pkg/controller/license", "pkg/controller/license/trial",
	}},
	{module: "github.com/envoyproxy/gateway", built: further, tags: "integration", packages: []string{"internal/provider/kubernetes"}},
	{module: "github.com/kubernetes-sigs/kro", built: further, packages: []string{"test/integration/suites/core"}},
	{module: "sigs.k8s.io/cluster-api-provider-gcp", built: further, packages: []string{"api/v1beta1"}},
}

// known are the tests that may fail with anykind, with the reasons.
var known = map[string]string{
	"Informer Cache Cache test as an Informer with structured objects should allow getting an informer by group/version/kind to be cancelled": `
		It wants an informer not to be ready by the time when a context is looked at that has ended
		already. A server that answers at once sometimes has filled it by then.`,
	"Informer Cache without global DeepCopy Cache test as an Informer with structured objects should allow getting an informer by group/version/kind to be cancelled": "The same.",
	"TestWaitForSet_JobWithTTL/NotFound_Job_without_TTL_option_is_treated_as_error": `
		It asks ten times a second, as often as its client may, and wants an error that it gets only if
		the client does not find that out first. It fails now and then with kube-apiserver, too.`,
	"TestMutate_ApplyConfiguration_InjectsSidecarInitContainerWithArgs": `
		It wants the list of OpenAPI documents to be read, which is done beside it, by the time when a
		policy has been made and seen. With a server that does the latter at once it sometimes is not.`,
	"TestMutate_ApplyConfiguration_InjectsEnvWithFieldRef": "The same.",
}
