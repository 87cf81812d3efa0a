package registry

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// warmBatch limits the objects of one conversion.
const warmBatch = 256

// Warm converts items, which may have nils, to version v in batches, so that View finds the results.
// It skips objects that another request is converting. It returns the error of a conversion; View
// returns it again for each unconverted object.
func (r *Registry) Warm(ctx context.Context, d *resource.Definition, v *resource.Version, items iter.Seq[*watchcache.Object]) error {
	if d.Convert == nil {
		return nil
	}
	validity := r.Validity(ctx, d)
	var c claims
	for o := range items {
		if o == nil || o.Err() != nil || !converts(d, v, o) {
			continue
		}
		publish, ok := o.Claim(viewKey{d.Identity(), v.Name}, validity)
		if !ok {
			continue
		}
		c.objects, c.publish = append(c.objects, o), append(c.publish, publish)
		if len(c.objects) < warmBatch {
			continue
		}
		if err := c.convert(ctx, r, d, v); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c = claims{}
	}
	return c.convert(ctx, r, d, v)
}

// claims are objects to convert here, for which other requests wait.
type claims struct {
	objects []*watchcache.Object
	publish []func([]byte, error)
}

// convert converts all objects and publishes all claims.
func (c *claims) convert(ctx context.Context, r *Registry, d *resource.Definition, v *resource.Version) (err error) {
	out := make([][]byte, len(c.objects))
	errs := make([]error, len(c.objects))
	was := make([][]byte, len(c.objects))
	err = errors.New("the conversion panicked")
	defer func() {
		for i, publish := range c.publish {
			if out[i] == nil && errs[i] == nil {
				errs[i] = err
			}
			publish(out[i], errs[i])
		}
	}()
	var trees []map[string]any
	var at []int
	for i, o := range c.objects {
		data, bad := o.JSON()
		if bad != nil {
			errs[i] = StorageError(bad)
			continue
		}
		t, bad := r.parse(ctx, o, data)
		if bad != nil {
			errs[i] = bad
			continue
		}
		was[i] = data
		refresh(d, t, o.Revision)
		trees, at = append(trees, t), append(at, i)
	}
	if len(trees) > 0 {
		// Other requests wait for this result, even if this one is canceled.
		converted, failed := d.Convert(context.WithoutCancel(ctx), trees, v.Name)
		if failed != nil {
			err = unconverted(failed)
			return err
		}
		for i, t := range converted {
			show(d, v, t)
			out[at[i]] = encodeAs(t, was[at[i]])
		}
	}
	err = nil
	return nil
}

// ahead yields items. If a selection needs converted objects, it converts them in batches first.
func (r *Registry) ahead(ctx context.Context, s *Selection, target *Target, items iter.Seq[*watchcache.Object]) iter.Seq[*watchcache.Object] {
	if len(s.wanted) == 0 || target.Definition.Convert == nil {
		return items
	}
	return func(yield func(*watchcache.Object) bool) {
		var next []*watchcache.Object
		flush := func() bool {
			// An error comes again from the later look at the object.
			_ = r.Warm(ctx, target.Definition, target.Version, slices.Values(next))
			for _, o := range next {
				if !yield(o) {
					return false
				}
			}
			next = next[:0]
			return true
		}
		for o := range items {
			if o.Err() == nil && s.labels != nil && !s.labels.Matches(o.Labels()) {
				continue
			}
			if next = append(next, o); len(next) == warmBatch && !flush() {
				return
			}
		}
		flush()
	}
}
