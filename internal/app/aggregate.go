package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/server/aggregate"
	"github.com/anykind/anykind/internal/server/aggregate/published"
)

// aggregate creates the proxy for other API servers. A write of an APIService returns when it has
// taken effect on this server.
func (w *wired) aggregate(a *App, o Options, core *resource.Set) {
	w.others = aggregate.New(aggregate.Options{
		Cache: w.cache, Kinds: core, Catalog: w.catalog, Dialer: w.dialer,
		Certificate: a.identity.asProxy, Headers: o.Authentication.FrontProxy.Headers, Gates: o.Gates, Log: o.Log,
	})
	w.published = published.New(published.Options{})
	core.Lookup("apiregistration.k8s.io", "apiservices").Committed = w.others.Committed
	a.later(func(context.Context) error { w.others.Close(); return nil })
}

// fresh waits until all acknowledged changes of served kinds, here and in other API servers, are
// visible.
func (w *wired) fresh(ctx context.Context) error {
	_, err := w.others.Fresh(ctx)
	return errors.Join(err, w.crds.Fresh(ctx))
}

// publishedFor fetches the resources of other API servers. It waits up to timeout for each.
func (w *wired) publishedFor(timeout time.Duration) func(context.Context, *aggregate.Services) map[schema.GroupVersion]*published.Version {
	return func(ctx context.Context, services *aggregate.Services) map[schema.GroupVersion]*published.Version {
		return w.published.Versions(ctx, services, timeout)
	}
}

// documented fetches the OpenAPI documents of other API servers.
type documented struct{ *wired }

func (d documented) Documents(ctx context.Context) map[string]published.Document {
	return d.published.Documents(ctx, d.others.Services(ctx))
}

func (d documented) DocumentsV2(ctx context.Context) []published.DocumentV2 {
	return d.published.DocumentsV2(ctx, d.others.Services(ctx))
}

func (d documented) Forward(s *aggregate.Service) http.Handler { return d.others.Forward(s) }
