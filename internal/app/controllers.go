package app

import (
	"context"
	"os"

	"github.com/google/uuid"

	"github.com/anykind/anykind/internal/allocation"
	"github.com/anykind/anykind/internal/controller"
	"github.com/anykind/anykind/internal/controller/apiservice"
	"github.com/anykind/anykind/internal/controller/bootstrap"
	"github.com/anykind/anykind/internal/controller/clusterauthentication"
	"github.com/anykind/anykind/internal/controller/definition"
	"github.com/anykind/anykind/internal/controller/expiry"
	"github.com/anykind/anykind/internal/controller/garbage"
	"github.com/anykind/anykind/internal/controller/kubernetesservice"
	"github.com/anykind/anykind/internal/controller/migration"
	"github.com/anykind/anykind/internal/controller/namespace"
	"github.com/anykind/anykind/internal/controller/rootca"
	"github.com/anykind/anykind/internal/controller/serviceaccount"
	"github.com/anykind/anykind/internal/controller/servicecidr"
	"github.com/anykind/anykind/internal/controller/servicerepair"
)

// controllers are those that there are. ca is what clients trust the server by, trust whom
// it knows them by.
func controllers(ca []byte, trust clusterauthentication.Trust, server kubernetesservice.Server, addresses *allocation.Allocator) []controller.Descriptor {
	return []controller.Descriptor{
		{Name: namespace.Name, Alias: "namespace", New: namespace.New},
		{Name: serviceaccount.Name, Alias: "serviceaccount", New: serviceaccount.New},
		{Name: rootca.Name, Alias: "root-ca-cert-publisher", New: rootca.New(ca)},
		{Name: garbage.Name, Alias: "garbagecollector", New: garbage.New},
		{Name: migration.Name, Alias: "svm", New: migration.New},
		{Name: expiry.Name, New: expiry.New},
		{Name: definition.Name, New: definition.New},
		{Name: servicecidr.Name, New: servicecidr.New(server.CIDRs)},
		{Name: kubernetesservice.Name, New: kubernetesservice.New(server)},
		{Name: apiservice.Name, New: apiservice.New},
		{Name: bootstrap.Name, New: bootstrap.New},
		{Name: servicerepair.Name, New: servicerepair.New(addresses)},
		{Name: clusterauthentication.Name, New: clusterauthentication.New(trust)},
	}
}

// checkControllers returns an error for names of controllers that there are not.
func checkControllers(names []string) error {
	_, err := controller.Select(controllers(nil, clusterauthentication.Trust{}, kubernetesservice.Server{}, nil), names)
	return err
}

// control returns what runs the controllers that are on, or nil if none is. Of the
// servers of a store one runs them.
func (w *wired) control(a *App, o Options) (func(context.Context) error, error) {
	on, err := controller.Select(controllers(a.CA(), a.identity.trust(o), w.server, w.addresses), o.Controllers)
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
	for _, d := range controllers(nil, clusterauthentication.Trust{}, kubernetesservice.Server{}, nil) {
		names = append(names, d.Name)
	}
	return names
}
