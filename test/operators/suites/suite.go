package main

// A suite is a module and those of its packages that use envtest.
type suite struct {
	module   string
	packages []string
	// skip are tests that do not start the programs of KUBEBUILDER_ASSETS, but such that they
	// fetch from a site.
	skip string
}

var suites = []suite{
	{module: "sigs.k8s.io/controller-runtime", skip: "/aggregatedDiscovery=false", packages: []string{
		"pkg/builder", "pkg/cache", "pkg/client", "pkg/client/apiutil", "pkg/cluster", "pkg/controller",
		"pkg/controller/controllerutil", "pkg/envtest", "pkg/handler", "pkg/internal/controller",
		"pkg/internal/recorder", "pkg/internal/testing/controlplane", "pkg/manager",
		"pkg/manager/internal/integration", "pkg/metrics/filters", "pkg/reconcile", "pkg/source", "pkg/webhook",
	}},
	{module: "github.com/open-policy-agent/gatekeeper/v3", packages: []string{
		"pkg/controller/config", "pkg/controller/connectionstatus",
		"pkg/controller/mutators/core", "pkg/readiness", "pkg/watch",
	}},
}

// known are tests that may fail with anykind, and why.
var known = map[string]string{
	"Informer Cache Cache test as an Informer with structured objects should allow getting an informer by group/version/kind to be cancelled": `
		It wants an informer not to be ready by the time when a context is looked at that has ended
		already. A server that answers at once sometimes has filled it by then.`,
	"Informer Cache without global DeepCopy Cache test as an Informer with structured objects should allow getting an informer by group/version/kind to be cancelled": "The same.",
}
