package registry

import (
	"bytes"
	"context"
	"errors"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Outdated returns the objects of d that may be stored in an outdated form, one that an update would
// change, and the number of all objects. New objects have the present form, and an update never stores
// an older version than before. So rewriting these objects completes a migration.
func (r *Registry) Outdated(ctx context.Context, d *resource.Definition) (objects []*watchcache.Object, total int, err error) {
	if _, err := r.cache.Fresh(ctx); err != nil {
		return nil, 0, StorageError(err)
	}
	snapshot, err := r.cache.Resource(d.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, 0, StorageError(err)
	}
	v := d.StorageVersion()
	for o := range snapshot.Scan(d.StoragePrefix, "") {
		total++
		if o.Err() != nil || !asStored(d, v, o) || r.outdated(ctx, o.Key) {
			objects = append(objects, o)
		}
	}
	return objects, total, nil
}

// Rewrite stores an object as an update without changes would: in the storage version, pruned and
// defaulted. The object was valid and its meaning stays, so admission is skipped. An object that is
// gone needs no rewrite.
func (r *Registry) Rewrite(ctx context.Context, d *resource.Definition, o *watchcache.Object) error {
	v := d.StorageVersion()
	namespace, name := d.Split(o.Key)
	target := StorageTarget(d, namespace, name)
	ctx = r.Anew(ctx, d)
	for {
		was, err := r.read(ctx, o)
		if err != nil {
			return err
		}
		view, err := r.View(ctx, d, v, o)
		if err != nil || bytes.Equal(view.JSON, was.JSON) && !r.outdated(ctx, o.Key) {
			return err
		}
		_, err = r.commit(ctx, d, kv.Write{Key: o.Key, Value: view.JSON, Expect: o.Revision, Was: was.JSON, Note: r.Note(ctx, "migrate", apply.Server, "")})
		if !errors.Is(err, errConflict) {
			return err
		}
		if o, err = r.current(ctx, &target); err != nil || o == nil {
			return err
		}
	}
}
