package app

import (
	"context"
	"os"

	"github.com/google/uuid"

	"github.com/anykind/anykind/internal/allocation"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/aggregation"
	"github.com/anykind/anykind/internal/controller/apiservice"
	"github.com/anykind/anykind/internal/controller/bootstrap"
	"github.com/anykind/anykind/internal/controller/clusterauthentication"
	"github.com/anykind/anykind/internal/controller/definition"
	"github.com/anykind/anykind/internal/controller/expiry"
	"github.com/anykind/anykind/internal/controller/flowschema"
	"github.com/anykind/anykind/internal/controller/garbage"
	"github.com/anykind/anykind/internal/controller/kubernetesservice"
	"github.com/anykind/anykind/internal/controller/migration"
	"github.com/anykind/anykind/internal/controller/namespace"
	"github.com/anykind/anykind/internal/controller/policytype"
	"github.com/anykind/anykind/internal/controller/rootca"
	"github.com/anykind/anykind/internal/controller/serviceaccount"
	"github.com/anykind/anykind/internal/controller/servicecidr"
	"github.com/anykind/anykind/internal/controller/servicerepair"
)

// told is what controllers are told of the server.
type told struct {
	ca        []byte                      // clients trust it by that
	trust     clusterauthentication.Trust // whom it knows clients by
	accounts  *serviceAccounts            // whose tokens it knows
	server    kubernetesservice.Server
	addresses *allocation.Allocator
}

// controllers are those that there are.
func controllers(of told) []controller.Descriptor {
	return append(of.accounts.controllers(of.ca), []controller.Descriptor{
		{Name: namespace.Name, Alias: "namespace", New: namespace.New},
		{Name: serviceaccount.Name, Alias: "serviceaccount", New: serviceaccount.New},
		{Name: rootca.Name, Alias: "root-ca-cert-publisher", New: rootca.New(of.ca)},
		{Name: garbage.Name, Alias: "garbagecollector", New: garbage.New},
		{Name: migration.Name, Alias: "svm", New: migration.New},
		{Name: expiry.Name, New: expiry.New},
		{Name: definition.Name, New: definition.New},
		{Name: servicecidr.Name, New: servicecidr.New(of.server.CIDRs)},
		{Name: kubernetesservice.Name, New: kubernetesservice.New(of.server)},
		{Name: apiservice.Name, New: apiservice.New},
		{Name: bootstrap.Name, New: bootstrap.New},
		{Name: flowschema.Name, New: flowschema.New},
		{Name: policytype.Name, New: policytype.New},
		{Name: aggregation.Name, Alias: "clusterrole-aggregation", New: aggregation.New},
		{Name: servicerepair.Name, New: servicerepair.New(of.addresses)},
		{Name: clusterauthentication.Name, New: clusterauthentication.New(of.trust)},
	}...)
}

// checkControllers returns an error for names of controllers that there are not.
func checkControllers(names []string) error {
	_, err := controller.Select(controllers(told{accounts: &serviceAccounts{}}), names)
	return err
}

// control returns what runs the controllers that are on, or nil if none is. Of the
// servers of a store one runs them.
func (w *wired) control(a *App, o Options) (func(context.Context) error, error) {
	on, err := controller.Select(controllers(told{a.CA(), a.identity.trust(o), a.accounts, w.server, w.addresses}), o.Controllers)
	if err != nil || len(on) == 0 {
		return nil, err
	}
	objects := w.objects(controller.Manager, o.Log)
	run := func(ctx context.Context) error {
		return controller.New(controller.Options{Objects: objects, Follow: w.cache.Follow, Controllers: on}).Run(ctx)
	}
	if !o.shared() {
		return run, nil
	}
	host, _ := os.Hostname()
	election := &controller.Election{Objects: objects, Identity: host + "_" + uuid.NewString()}
	return func(ctx context.Context) error { return election.Run(ctx, run) }, nil
}

// Controllers returns the names of all controllers.
func Controllers() (names []string) {
	for _, d := range controllers(told{accounts: &serviceAccounts{}}) {
		names = append(names, d.Name)
	}
	return names
}
