package app

import (
	"context"
	"sync/atomic"

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
}

// hook is the prefix of Kubernetes' checks for post-start hooks.
const hook = "poststarthook/"

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
	for _, step := range []struct {
		there bool
		run   func(context.Context) error
		names []string
	}{
		{true, done, []string{hook + "start-apiserver-admission-initializer"}},
		{true, h.cache.Run, []string{hook + "generic-apiserver-start-informers"}},
		{h.fair, done, []string{hook + "priority-and-fairness-config-consumer", hook + "priority-and-fairness-filter"}},
		{!h.fair, done, []string{hook + "max-in-flight-filter"}},
		{h.rekeys, done, []string{hook + "start-encryption-provider-config-automatic-reload"}},
		{true, h.cache.Run, []string{hook + "storage-object-count-tracker-hook"}},
		{true, h.definitions.Run, []string{hook + "start-apiextensions-informers", hook + "start-apiextensions-controllers", hook + "crd-informer-synced"}},
		{true, done, []string{hook + "start-system-namespaces-controller"}},
		{h.advertised, controllers, []string{hook + "peer-endpoint-reconciler-controller"}},
		{h.peers, controllers, []string{hook + "mixed-version-proxy-handler", hook + "local-discovery-cache-sync", hook + "peer-discovery-workers"}},
		{true, controllers, []string{hook + "start-cluster-authentication-info-controller"}},
		{h.identified, controllers, []string{hook + "start-kube-apiserver-identity-lease-controller", hook + "start-kube-apiserver-identity-lease-garbage-collector"}},
		{true, h.history.Run, []string{hook + "storage-readiness"}},
		{true, controllers, []string{hook + "start-legacy-token-tracking-controller", hook + "start-service-ip-repair-controllers"}},
		{h.roles != nil, h.roles, []string{hook + "rbac/bootstrap-roles"}},
		{true, controllers, []string{hook + "scheduling/bootstrap-system-priority-classes"}},
		{h.fair, controllers, []string{hook + "priority-and-fairness-config-producer"}},
		{true, controllers, []string{hook + "bootstrap-controller", hook + "start-kubernetes-service-cidr-controller"}},
		{true, h.cache.Run, []string{hook + "start-kube-aggregator-informers"}},
		{true, controllers, []string{hook + "apiservice-status-local-available-controller", hook + "apiservice-status-remote-available-controller",
			hook + "apiservice-registration-controller"}},
		{true, h.cache.Run, []string{hook + "apiservice-discovery-controller"}},
		{true, controllers, []string{hook + "kube-apiserver-autoregistration", "autoregister-completion"}},
		{true, h.definitions.Run, []string{hook + "apiservice-openapi-controller", hook + "apiservice-openapiv3-controller"}},
	} {
		for _, name := range step.names {
			if step.there {
				checks = append(checks, server.Check{Name: name, Run: step.run})
			}
		}
	}
	return checks
}
