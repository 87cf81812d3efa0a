package registry

import (
	"context"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// heldKey is the context key of the held Moment of a Definition.
type heldKey struct{ *resource.Definition }

// Hold returns a context with a fixed Moment for conversions of d. Objects converted at the beginning
// of a request stay valid to its end.
func (r *Registry) Hold(ctx context.Context, d *resource.Definition) context.Context {
	if d.Moment == nil {
		return ctx
	}
	return context.WithValue(ctx, heldKey{d}, r.Moment(ctx, d))
}

// Anew is Hold for writes: earlier conversions are not reused, unless ctx holds a Moment already. A
// write must not rely on an outdated response of a webhook.
func (r *Registry) Anew(ctx context.Context, d *resource.Definition) context.Context {
	if d.Moment == nil || ctx.Value(heldKey{d}) != nil {
		return ctx
	}
	_, at := d.Moment()
	return context.WithValue(ctx, heldKey{d}, watchcache.Moment{Since: at, At: at})
}

// Moment returns the moment of a request for conversions of d, and for data derived from them.
func (r *Registry) Moment(ctx context.Context, d *resource.Definition) watchcache.Moment {
	if d.Moment == nil {
		return watchcache.Moment{}
	}
	if held, ok := ctx.Value(heldKey{d}).(watchcache.Moment); ok {
		return held
	}
	since, at := d.Moment()
	return watchcache.Moment{Since: since, At: at}
}
