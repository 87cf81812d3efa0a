package registry

import (
	"context"
	"errors"
	"iter"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// warmBatch is how many objects are converted together, at most.
const warmBatch = 256

// Warm converts those of items, which may have nils, that version v shows in
// another version than they are stored in, many at a time, so that View of each
// finds it done. What somebody else is converting is left to them. An error is
// that of a conversion; View of what was not converted says it again.
func (r *Registry) Warm(ctx context.Context, d *resource.Definition, v *resource.Version, items []*watchcache.Object) error {
	if d.Convert == nil {
		return nil
	}
	moment := r.Moment(ctx, d)
	for len(items) > 0 {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var c claims
		for len(items) > 0 && len(c.objects) < warmBatch {
			o := items[0]
			items = items[1:]
			if o == nil || o.Err != nil || !converts(d, v, o) {
				continue
			}
			if settle, ok := o.Claim(viewKey{d, v.Name}, moment); ok {
				c.objects, c.settle = append(c.objects, o), append(c.settle, settle)
			}
		}
		if err := c.convert(ctx, d, v); err != nil {
			return err
		}
	}
	return nil
}

// claims are objects that we have to convert because others wait for us to.
type claims struct {
	objects []*watchcache.Object
	settle  []func([]byte, error)
}

// convert converts all objects and settles all claims.
func (c *claims) convert(ctx context.Context, d *resource.Definition, v *resource.Version) (err error) {
	out := make([][]byte, len(c.objects))
	errs := make([]error, len(c.objects))
	err = errors.New("the conversion panicked")
	defer func() {
		for i, settle := range c.settle {
			if out[i] == nil && errs[i] == nil {
				errs[i] = err
			}
			settle(out[i], errs[i])
		}
	}()
	var trees []map[string]any
	var at []int
	for i, o := range c.objects {
		t, bad := parse(o, o.JSON)
		if bad != nil {
			errs[i] = bad
			continue
		}
		refresh(d, t, o.Revision)
		trees, at = append(trees, t), append(at, i)
	}
	if len(trees) > 0 {
		// Others wait for this too, whatever becomes of the request.
		converted, failed := d.Convert(context.WithoutCancel(ctx), trees, v.Name)
		if failed != nil {
			err = unconverted(failed)
			return err
		}
		for i, t := range converted {
			show(d, v, t)
			out[at[i]] = encodeAs(t, c.objects[at[i]])
		}
	}
	err = nil
	return nil
}

// ahead yields what items does. Where a selection looks into objects that must
// be converted for that, it converts them some at a time before it yields them.
func (r *Registry) ahead(ctx context.Context, s *Selection, target *Target, items iter.Seq[*watchcache.Object]) iter.Seq[*watchcache.Object] {
	if len(s.wanted) == 0 || target.Definition.Convert == nil {
		return items
	}
	return func(yield func(*watchcache.Object) bool) {
		var next []*watchcache.Object
		flush := func() bool {
			// An error comes again where the object is looked into.
			_ = r.Warm(ctx, target.Definition, target.Version, next)
			for _, o := range next {
				if !yield(o) {
					return false
				}
			}
			next = next[:0]
			return true
		}
		for o := range items {
			if o.Err == nil && s.labels != nil && !s.labels.Matches(&o.Labels) {
				continue
			}
			if next = append(next, o); len(next) == warmBatch && !flush() {
				return
			}
		}
		flush()
	}
}
