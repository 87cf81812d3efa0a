package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/anykind/anykind/internal/builtin/allocation"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/aggregation"
	"github.com/anykind/anykind/internal/controller/apiservice"
	"github.com/anykind/anykind/internal/controller/bootstrap"
	"github.com/anykind/anykind/internal/controller/bootstrapsigner"
	"github.com/anykind/anykind/internal/controller/clusterauthentication"
	"github.com/anykind/anykind/internal/controller/conversion"
	"github.com/anykind/anykind/internal/controller/definition"
	"github.com/anykind/anykind/internal/controller/expiry"
	"github.com/anykind/anykind/internal/controller/flowschema"
	"github.com/anykind/anykind/internal/controller/garbage"
	"github.com/anykind/anykind/internal/controller/kubernetesservice"
	"github.com/anykind/anykind/internal/controller/leaderelection"
	"github.com/anykind/anykind/internal/controller/legacytoken"
	"github.com/anykind/anykind/internal/controller/migration"
	"github.com/anykind/anykind/internal/controller/namespace"
	"github.com/anykind/anykind/internal/controller/policytype"
	quotacontroller "github.com/anykind/anykind/internal/controller/quota"
	"github.com/anykind/anykind/internal/controller/rootca"
	"github.com/anykind/anykind/internal/controller/serveridentity"
	"github.com/anykind/anykind/internal/controller/serviceaccount"
	"github.com/anykind/anykind/internal/controller/servicecidr"
	"github.com/anykind/anykind/internal/controller/servicerepair"
	"github.com/anykind/anykind/internal/controller/storageversion"
	"github.com/anykind/anykind/internal/controller/tokencleaner"
	"github.com/anykind/anykind/internal/object/gate"
	"github.com/anykind/anykind/internal/server"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/availability"
)

// told has the facts about the server that controllers need.
type told struct {
	ca        []byte                      // CA of the server
	trust     clusterauthentication.Trust // authentication settings
	accounts  *serviceAccounts            // signer and authenticator of tokens
	server    kubernetesservice.Server
	addresses *allocation.Allocator
	quotas    quotacontroller.Options
	others    *aggregate.Aggregator // the other API servers
	identity  serveridentity.Server
	eventTTL  time.Duration
	leaders   controller.Term // of the controller that elects leaders
	versions  *storageversion.Barrier
}

// controllers returns all controllers.
func controllers(of told) []controller.Descriptor {
	return append(ofManager(of), ofServer(of)...)
}

// ofManager returns the controllers of kube-controller-manager.
func ofManager(of told) []controller.Descriptor {
	return append(of.accounts.controllers(of.ca), []controller.Descriptor{
		{Name: namespace.Name, Alias: "namespace", Aggregated: true, New: namespace.New},
		{Name: serviceaccount.Name, Alias: "serviceaccount", New: serviceaccount.New},
		{Name: rootca.Name, Alias: "root-ca-cert-publisher", New: rootca.New(of.ca)},
		{Name: garbage.Name, Alias: "garbagecollector", Aggregated: true, New: garbage.New},
		{Name: migration.Name, Alias: "svm", New: migration.New},
		{Name: aggregation.Name, Alias: "clusterrole-aggregation", New: aggregation.New},
		{Name: policytype.Name, New: policytype.New},
		{Name: quotacontroller.Name, Alias: "resourcequota", New: quotacontroller.New(of.quotas)},
		{Name: tokencleaner.Name, Alias: "tokencleaner", Off: true, New: tokencleaner.New},
		{Name: bootstrapsigner.Name, Alias: "bootstrapsigner", Off: true, New: bootstrapsigner.New},
	}...)
}

// ofServer returns the controllers of kube-apiserver, and those that it does not need because its
// store does their work.
func ofServer(of told) []controller.Descriptor {
	return []controller.Descriptor{
		{Name: expiry.Name, New: expiry.New(of.eventTTL)},
		{Name: definition.Name, New: definition.New},
		{Name: conversion.Name, New: conversion.New},
		{Name: legacytoken.TrackingName, New: legacytoken.NewTracker},
		{Name: servicecidr.Name, New: servicecidr.New(of.server.CIDRs)},
		{Name: kubernetesservice.Name, New: kubernetesservice.New(of.server)},
		{Name: apiservice.Name, New: apiservice.New},
		{Name: availability.Name, New: availability.New(of.others)},
		{Name: bootstrap.Name, New: bootstrap.New},
		{Name: flowschema.Name, New: flowschema.New},
		{Name: servicerepair.Name, New: servicerepair.New(of.addresses)},
		{Name: serveridentity.Name, Everywhere: true, New: serveridentity.New(of.identity)},
		{Name: leaderelection.Name, Term: &of.leaders, New: leaderelection.New},
		{Name: storageversion.Name, Everywhere: true, New: storageversion.New(of.identity.ID(), of.versions)},
		{Name: clusterauthentication.Name, Everywhere: true, New: clusterauthentication.New(of.trust)},
	}
}

// OwnControllers returns the controllers of kube-apiserver, in the syntax of Options.Controllers,
// and adds those of kube-controller-manager that others selects in the same syntax.
func OwnControllers(others string) []string {
	var names []string
	none := told{accounts: &serviceAccounts{}}
	for _, d := range ofServer(none) {
		names = append(names, d.Name)
	}
	for name := range strings.FieldsFuncSeq(others, func(r rune) bool { return r == ',' || r == ' ' }) {
		names = append(names, name)
	}
	return names
}

// checkControllers returns an error for unknown names of controllers.
func checkControllers(names []string) error {
	_, err := controller.Select(controllers(told{accounts: &serviceAccounts{}}), names)
	return err
}

// control runs the enabled controllers. One server of a store is the leader and runs them, except
// for those that each server runs.
func (w *wired) control(a *App, o Options) error {
	w.advertise(a)
	identity := w.identity
	on, err := controller.Select(controllers(told{
		a.CA(), a.identity.trust(o), a.accounts, w.server, w.addresses,
		quotacontroller.Options{Cache: w.cache, Evaluators: w.usage, Turns: &w.charging}, w.others, identity, cmp.Or(o.EventTTL, expiry.DefaultTTL),
		o.leaderElection(), w.versions,
	}), o.Controllers)
	if err != nil {
		return err
	}
	publishing, err := w.publishes(a, &o.Cluster)
	if err != nil {
		return err
	}
	of := o.divide(append(append(on, publishing...), w.finding()...))
	if !of.publishes {
		w.versions.Release()
	}
	objects := w.objects(controller.Manager, o.Log)
	run := func(on []controller.Descriptor) func(context.Context) error {
		return func(ctx context.Context) error {
			engine := controller.New(controller.Options{Objects: objects, Follow: w.cache.Follow, Controllers: on, Metrics: w.queues})
			defer a.engines.add(engine)()
			return engine.Run(ctx)
		}
	}
	work := a.parts.before()
	a.later(work.stop)
	elect := func(on []controller.Descriptor, instance string, term controller.Term) {
		election := &controller.Election{Objects: objects, Identity: identity.Host + "_" + instance, Term: term}
		w.watch(work.run("controllers", func(ctx context.Context) error { return election.Run(ctx, run(on)) }))
	}
	for _, d := range of.elected {
		elect([]controller.Descriptor{d}, string(uuid.NewUUID()), *d.Term)
	}
	if len(of.everywhere) > 0 {
		w.watch(work.run("controllers of each server", func(ctx context.Context) error {
			err := run(of.everywhere)(ctx)
			w.leave(ctx, &objects, identity)
			return err
		}))
	}
	switch {
	case len(of.once) == 0:
	case o.shared():
		elect(of.once, identity.Instance, controller.Term{})
	default:
		a.engines.expect(1)
		w.watch(work.run("controllers", o.copied.once(a.backend, run(of.once))))
	}
	return nil
}

// division is how the servers of a store share controllers.
type division struct {
	once       []controller.Descriptor // one server runs them
	elected    []controller.Descriptor // likewise, with an election for each
	everywhere []controller.Descriptor // each server runs them
	publishes  bool                    // storage versions
}

// divide divides the controllers that the gates and the kind of the server allow. A server with a store of its own runs
// all at once, and a copy holds no elections.
func (o *Options) divide(all []controller.Descriptor) (of division) {
	for _, d := range all {
		to := &of.once
		switch {
		case !o.runs(d.Name):
			continue
		case d.Term != nil && o.copied == nil:
			to = &of.elected
		case d.Everywhere && o.shared():
			to = &of.everywhere
		}
		*to = append(*to, d)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(slices.Concat(of.once, of.everywhere), func(d controller.Descriptor) bool { return d.Name == name })
	}
	of.publishes = has(storageversion.Name) && has(serveridentity.Name) // its Lease names the server
	return of
}

// leaderElection returns the Term of the controller that elects leaders.
func (o *Options) leaderElection() controller.Term {
	if o.LeaderElection.Lease == "" {
		return leaderelection.Term()
	}
	return o.LeaderElection
}

// runs reports whether the feature gates, and the kind of the server, allow a controller.
func (o *Options) runs(name string) bool {
	switch name {
	case serveridentity.Name:
		return o.copied == nil && o.Gates.On(gate.APIServerIdentity) // a copy has no process of its own
	case storageversion.Name:
		return o.copied == nil && o.Gates.On(gate.StorageVersionAPI)
	case leaderelection.Name:
		return o.Gates.On(gate.CoordinatedLeaderElection)
	}
	return true
}

// watch adds controllers to the health checks.
func (w *wired) watch(controllers server.Check) {
	if others := w.health.controllers.Load(); others != nil {
		own := controllers.Run
		controllers.Run = func(ctx context.Context) error { return errors.Join(others.Run(ctx), own(ctx)) }
	}
	w.health.controllers.Store(&controllers)
}

// leave retires the Lease of this server, so that others see at once that it stops. A failure is
// only logged: the Lease expires.
func (w *wired) leave(ctx context.Context, objects *controller.Objects, s serveridentity.Server) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := serveridentity.Retire(ctx, objects, s); err != nil {
		w.log.Info("the Lease of this server cannot be removed and will expire", "error", err)
	}
}

// Controllers returns the names of all controllers.
func Controllers() (names []string) {
	for _, d := range controllers(told{accounts: &serviceAccounts{}}) {
		names = append(names, d.Name)
	}
	return names
}
