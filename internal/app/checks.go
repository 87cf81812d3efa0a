package app

import (
	"context"
	"sync/atomic"

	"github.com/anykind/anykind/internal/controller/storageversion"
	"github.com/anykind/anykind/internal/server"
)

// health has the parts that health checks examine. Nil parts are healthy.
type health struct {
	store       func(context.Context) error
	cache       server.Check
	definitions server.Check
	history     server.Check
	roles       func(context.Context) error // nil if no default roles are written
	kms         []server.Check
	// rekeys reports that the server follows its encryption configuration.
	rekeys bool
	// controllers is set when they run, after the server has begun to listen.
	controllers atomic.Pointer[server.Check]
	// fair reports that the server has the priority levels for Leases.
	fair bool
	// identified reports that the server has a Lease that names it.
	identified bool
	// advertised reports that the server publishes its address for peers, and peers that it
	// forwards requests to them.
	advertised, peers bool
	// elects reports that the server elects leaders of other components.
	elects bool
	// versions are the storage versions that the server publishes; nil for none.
	versions *storageversion.Barrier
}

// hook is the prefix of Kubernetes' checks for post-start hooks.
const hook = "poststarthook/"

// addChecks appends checks with the same task. Inlined, its many calls would be most of the code of this file.
//
//go:noinline
func addChecks(checks []server.Check, run func(context.Context) error, names []string) []server.Check {
	for _, name := range names {
		checks = append(checks, server.Check{Name: name, Run: run})
	}
	return checks
}

// checks returns the checks of kube-apiserver, with its names and order. Each examines the
// part with the task of its name. Steps that precede the listener are always healthy: otherwise no
// request would arrive.
func (h *health) checks() []server.Check {
	done := func(context.Context) error { return nil }
	controllers := func(ctx context.Context) error {
		if c := h.controllers.Load(); c != nil {
			return c.Run(ctx)
		}
		return nil
	}
	checks := []server.Check{
		{Name: "log", Run: done},
		{Name: "loopback-serving-certificate", Run: done, Except: []string{"readyz"}}, // the server does not call itself
		{Name: "etcd", Run: h.store}, // for any backend
		{Name: "etcd-readiness", Run: h.store, Except: []string{"healthz", "livez"}},
	}
	checks = append(checks, h.kms...)
	checks = append(checks, server.Check{Name: "informer-sync", Run: h.cache.Run, Except: []string{"healthz", "livez"}})
	add := func(run func(context.Context) error, names ...string) { checks = addChecks(checks, run, names) }
	add(done, hook+"start-apiserver-admission-initializer")
	add(h.cache.Run, hook+"generic-apiserver-start-informers")
	if h.fair {
		add(done, hook+"priority-and-fairness-config-consumer", hook+"priority-and-fairness-filter")
	} else {
		add(done, hook+"max-in-flight-filter")
	}
	if h.rekeys {
		add(done, hook+"start-encryption-provider-config-automatic-reload")
	}
	add(h.cache.Run, hook+"storage-object-count-tracker-hook")
	add(h.definitions.Run, hook+"start-apiextensions-informers", hook+"start-apiextensions-controllers", hook+"crd-informer-synced")
	add(done, hook+"start-system-namespaces-controller")
	if h.elects {
		add(controllers, hook+"start-kube-apiserver-coordinated-leader-election-controller")
	}
	if h.advertised {
		add(controllers, hook+"peer-endpoint-reconciler-controller")
	}
	if h.peers {
		add(controllers, hook+"mixed-version-proxy-handler", hook+"local-discovery-cache-sync", hook+"peer-discovery-workers")
	}
	add(controllers, hook+"start-cluster-authentication-info-controller")
	if h.identified {
		add(controllers, hook+"start-kube-apiserver-identity-lease-controller", hook+"start-kube-apiserver-identity-lease-garbage-collector")
	}
	add(h.history.Run, hook+"storage-readiness")
	add(controllers, hook+"start-legacy-token-tracking-controller", hook+"start-service-ip-repair-controllers")
	if h.roles != nil {
		add(h.roles, hook+"rbac/bootstrap-roles")
	}
	add(controllers, hook+"scheduling/bootstrap-system-priority-classes")
	if h.fair {
		add(controllers, hook+"priority-and-fairness-config-producer")
	}
	add(controllers, hook+"bootstrap-controller", hook+"start-kubernetes-service-cidr-controller")
	add(h.cache.Run, hook+"start-kube-aggregator-informers")
	add(controllers, hook+"apiservice-status-local-available-controller", hook+"apiservice-status-remote-available-controller",
		hook+"apiservice-registration-controller")
	add(h.cache.Run, hook+"apiservice-discovery-controller")
	if h.versions != nil {
		add(h.versions.Ready, hook+storageversion.Name)
	}
	add(controllers, hook+"kube-apiserver-autoregistration", "autoregister-completion")
	add(h.definitions.Run, hook+"apiservice-openapi-controller", hook+"apiservice-openapiv3-controller")
	return checks
}
