package registry

import (
	"context"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// heldKey is the context key of the held Validity of a Definition.
type heldKey struct{ *resource.Definition }

// Hold returns a context with a fixed Validity for conversions of d. Objects converted at the beginning
// of a request stay valid to its end.
func (r *Registry) Hold(ctx context.Context, d *resource.Definition) context.Context {
	if d.ConversionClock == nil {
		return ctx
	}
	return context.WithValue(ctx, heldKey{d}, r.Validity(ctx, d))
}

// Anew is Hold for writes: earlier conversions are not reused, unless ctx holds a Validity already. A
// write must not rely on an outdated response of a webhook.
func (r *Registry) Anew(ctx context.Context, d *resource.Definition) context.Context {
	if d.ConversionClock == nil || ctx.Value(heldKey{d}) != nil {
		return ctx
	}
	_, at := d.ConversionClock()
	return context.WithValue(ctx, heldKey{d}, watchcache.Validity{Since: at, At: at})
}

// Validity returns the Validity of a request for conversions of d, and for data derived from them.
func (r *Registry) Validity(ctx context.Context, d *resource.Definition) watchcache.Validity {
	if d.ConversionClock == nil {
		return watchcache.Validity{}
	}
	if held, ok := ctx.Value(heldKey{d}).(watchcache.Validity); ok {
		return held
	}
	since, at := d.ConversionClock()
	return watchcache.Validity{Since: since, At: at}
}
