package app

import (
	"context"

	"github.com/anykind/anykind/internal/aggregate"
	"github.com/anykind/anykind/internal/resource"
)

// aggregate makes the way to other API servers. A write of an APIService returns when it is in
// force here.
func (w *wired) aggregate(a *App, o Options, core *resource.Set) {
	w.others = aggregate.New(aggregate.Options{
		Cache: w.cache, Kinds: core, Catalog: w.catalog, Dialer: w.dialer,
		Certificate: a.identity.asProxy, Headers: o.Authentication.FrontProxy.Headers, Log: o.Log,
	})
	core.Lookup("apiregistration.k8s.io", "apiservices").Committed = w.others.Committed
	a.later(func(context.Context) error { w.others.Close(); return nil })
}
