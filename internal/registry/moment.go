package registry

import (
	"context"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// heldKey names the Moment of a Definition that holds in a context.
type heldKey struct{ *resource.Definition }

// Hold returns a context in which it stays the same moment for what is converted of d,
// so that what was converted together at its beginning serves to its end.
func (r *Registry) Hold(ctx context.Context, d *resource.Definition) context.Context {
	if d.Moment == nil {
		return ctx
	}
	return context.WithValue(ctx, heldKey{d}, r.Moment(ctx, d))
}

// Anew is Hold for whoever writes: nothing serves that was converted earlier, unless
// ctx is one that holds already. What is written must not be made of what a webhook
// would not say any more.
func (r *Registry) Anew(ctx context.Context, d *resource.Definition) context.Context {
	if d.Moment == nil || ctx.Value(heldKey{d}) != nil {
		return ctx
	}
	_, at := d.Moment()
	return context.WithValue(ctx, heldKey{d}, watchcache.Moment{Since: at, At: at})
}

// Moment returns the moment of whoever asks for what is converted of d, or made of it.
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
