package controller

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/object/status"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/registry/apply"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// Manager is the field manager of controllers.
const Manager = "kube-controller-manager"

// Objects reads and writes stored objects. Backend, Catalog and Registry are required. The Catalog
// has the built-in kinds from the start.
type Objects struct {
	Backend  kv.Backend
	Catalog  *resource.Catalog
	Registry *registry.Registry
	// Aggregated are other servers, whose objects have keys of their own; nil for none. Their objects
	// can be read, changed and deleted like stored ones.
	Aggregated Aggregated
	// Refresh waits until the Catalog has everything committed before the call. It is called before
	// a kind counts as unknown.
	Refresh func(context.Context) error
	// Manager is the field manager; "" records nothing.
	Manager string
	Now     func() time.Time // time.Now if nil
	Logger  *slog.Logger     // slog.Default if nil
}

// ManagedBy returns a copy of o with another field manager.
func (o *Objects) ManagedBy(manager string) *Objects {
	own := *o
	own.Manager = manager
	return &own
}

// complete sets the defaults.
func (o *Objects) complete() {
	if o.Refresh == nil {
		o.Refresh = func(context.Context) error { return nil }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// StaleRetries limits retries after the Definition in use is no longer in force.
const StaleRetries = 10

// IsStale reports whether an operation must start over because a Definition or a namespace has
// changed.
func IsStale(err error) bool { return errors.Is(err, registry.ErrStale) }

// Read returns the header of the object at a key, or nil.
func (o *Objects) Read(ctx context.Context, key string) (*Header, error) {
	if IsOthers(key) {
		return o.readOther(ctx, key)
	}
	record, err := o.Backend.Get(ctx, key, kv.Latest)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ReadHeader(key, record.Value, record.Revision)
}

// Pages calls do for all objects with a prefix, as of the time of the call.
func (o *Objects) Pages(ctx context.Context, prefix string, do func(kv.Page)) error {
	if IsOthers(prefix) {
		return o.Aggregated.Pages(ctx, prefix, do)
	}
	within := kv.Range{Prefix: prefix, Limit: pageSize}
	for {
		page, err := o.Backend.List(ctx, within)
		if err != nil {
			return err
		}
		do(page)
		if !page.More {
			return nil
		}
		within.After = page.Records[len(page.Records)-1].Key
		within.Revision = page.Revision
	}
}

// errSame means that there is nothing to change.
var errSame = errors.New("nothing to change")

// Delete deletes the object at a key. A missing object is no error.
func (o *Objects) Delete(ctx context.Context, d *resource.Definition, key string, options *metav1.DeleteOptions) error {
	if IsOthers(key) {
		return o.Aggregated.Delete(ctx, key, options)
	}
	namespace, name := d.Split(key)
	_, err := o.Registry.Delete(ctx, registry.StorageTarget(d, namespace, name), options, registry.WriteOptions{AsStored: true, Manager: o.Manager})
	return ignoreMissing(err)
}

// Change updates the object at a key with edit. It writes nothing if edit returns false, or if the
// object has another UID.
func (o *Objects) Change(ctx context.Context, d *resource.Definition, key, uid, subresource string, edit func(object.Tree) bool) error {
	if IsOthers(key) {
		return o.changeOther(ctx, key, uid, edit)
	}
	return o.modify(ctx, d, key, uid, subresource, func(target registry.Target, old object.Tree) (object.Tree, error) {
		t := object.CloneTree(old)
		if !edit(t) {
			return nil, errSame
		}
		return o.record(ctx, target, old, t)
	})
}

// Apply is a forced server-side apply by the Manager to the object at a key. wanted returns the
// applied configuration. Nothing is written if that is nil, or if the object has another UID.
func (o *Objects) Apply(ctx context.Context, d *resource.Definition, key, uid, subresource string, wanted func(old object.Tree) object.Tree) error {
	return o.modify(ctx, d, key, uid, subresource, func(target registry.Target, old object.Tree) (object.Tree, error) {
		t := wanted(old)
		if t == nil {
			return nil, errSame
		}
		t["apiVersion"], t["kind"] = d.APIVersion(target.Version.Name), d.Kind
		applied, err := apply.FieldsOf(d, target.Version, subresource).Apply(ctx, old, t, o.Manager, true)
		if err != nil {
			return nil, err
		}
		applied, _, err = target.Version.Schema.Complete(applied)
		return applied, err
	})
}

// modify updates the object at a key with edit. It writes nothing if edit returns errSame, or if
// the object has another UID.
func (o *Objects) modify(ctx context.Context, d *resource.Definition, key, uid, subresource string, edit func(registry.Target, object.Tree) (object.Tree, error)) error {
	namespace, name := d.Split(key)
	target := registry.StorageTarget(d, namespace, name)
	target.Subresource = subresource
	_, err := o.Registry.Modify(ctx, target, func(old object.Tree) (object.Tree, error) {
		if object.UID(old) != uid {
			return nil, errSame
		}
		return edit(target, old)
	}, registry.WriteOptions{AsStored: true, Manager: o.Manager})
	if errors.Is(err, errSame) {
		return nil
	}
	return ignoreMissing(err)
}

// Create creates an object. An existing object is no error.
func (o *Objects) Create(ctx context.Context, d *resource.Definition, namespace string, t object.Tree) error {
	return o.create(ctx, d, namespace, t, registry.WriteOptions{Manager: o.Manager})
}

// CreateFor creates an object as a consequence of another one. It returns false if the other object
// has changed since it was read; that change has its own event.
func (o *Objects) CreateFor(ctx context.Context, because *Header, d *resource.Definition, namespace string, t object.Tree) (bool, error) {
	guard := kv.Guard{Key: because.Key, Revision: because.Revision}
	err := o.create(ctx, d, namespace, t, registry.WriteOptions{Manager: o.Manager, Guards: []kv.Guard{guard}})
	if IsStale(err) {
		return false, nil
	}
	return err == nil, err
}

func (o *Objects) create(ctx context.Context, d *resource.Definition, namespace string, t object.Tree, options registry.WriteOptions) error {
	target := registry.StorageTarget(d, namespace, object.Name(t))
	t["apiVersion"], t["kind"] = d.APIVersion(target.Version.Name), d.Kind
	t, err := o.record(ctx, target, nil, t)
	if err != nil {
		return err
	}
	for range StaleRetries {
		_, err = o.Registry.Create(ctx, target, registry.Given(t), options)
		if !IsStale(err) || options.Guards != nil {
			break
		}
	}
	if status.Is(err, metav1.StatusReasonAlreadyExists) {
		return nil
	}
	return err
}

// Replace updates an object with edit, whose argument is nil if the object does not exist. It
// returns the errors of edit, and records no field manager.
func (o *Objects) Replace(ctx context.Context, d *resource.Definition, namespace, name string, edit func(old object.Tree) (object.Tree, error)) error {
	_, err := o.Registry.Modify(ctx, registry.StorageTarget(d, namespace, name), edit, registry.WriteOptions{Manager: o.Manager})
	return err
}

// Put creates or updates an object with edit, whose argument is nil if the object does not exist.
// It records the field manager.
func (o *Objects) Put(ctx context.Context, d *resource.Definition, namespace, name string, edit func(old object.Tree) object.Tree) error {
	target := registry.StorageTarget(d, namespace, name)
	_, err := o.Registry.Modify(ctx, target, func(old object.Tree) (object.Tree, error) {
		t := edit(old)
		if old != nil && object.Equal(old, t) {
			return nil, errSame
		}
		return o.record(ctx, target, old, t)
	}, registry.WriteOptions{CreateMissing: true, Manager: o.Manager})
	if errors.Is(err, errSame) {
		return nil
	}
	return err
}

// Outdated returns the objects of d that may be stored in another form than the one in which an
// update would store them, and the number of all objects.
func (o *Objects) Outdated(ctx context.Context, d *resource.Definition) (objects []*watchcache.Object, total int, err error) {
	return o.Registry.Outdated(ctx, d)
}

// Convert converts objects to the storage version in one batch. Rewrite with the returned context
// then uses the results. Rewrite also returns the error of each object.
func (o *Objects) Convert(ctx context.Context, d *resource.Definition, batch []*watchcache.Object) context.Context {
	ctx = o.Registry.Anew(ctx, d)
	_ = o.Registry.Warm(ctx, d, d.StorageVersion(), slices.Values(batch))
	return ctx
}

// Rewrite stores an object in the form in which an update without changes would store it.
func (o *Objects) Rewrite(ctx context.Context, d *resource.Definition, stored *watchcache.Object) error {
	return o.Registry.Rewrite(ctx, d, stored)
}

// record updates t's managedFields for the change from old by the Manager. Objects without
// managedFields, and those about to be deleted, stay unchanged.
func (o *Objects) record(ctx context.Context, target registry.Target, old, t object.Tree) (object.Tree, error) {
	if o.Manager == "" {
		return t, nil
	}
	if old != nil && (object.Metadata(old)["managedFields"] == nil || object.Deleting(t) && len(object.Finalizers(t)) == 0 && target.Subresource == "") {
		return t, nil
	}
	// An object changed in its stored form may have another version than the target.
	v := target.Version
	for _, other := range target.Definition.Versions {
		if target.Definition.IsAPIVersion(object.APIVersion(t), other.Name) {
			v = other
		}
	}
	return apply.FieldsOf(target.Definition, v, target.Subresource).Update(ctx, old, t, o.Manager), nil
}

func ignoreMissing(err error) error {
	if status.Is(err, metav1.StatusReasonNotFound) {
		return nil
	}
	return err
}

// Parallel is the usual number of concurrent writes of a task.
const Parallel = 8

// Each calls do for all items, with limited concurrency, and returns one of the errors.
func Each[T any](ctx context.Context, parallel int, items []T, do func(T) error) error {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex
		next    int
		failed  error
	)
	for range min(parallel, len(items)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				i := next
				next++
				mu.Unlock()
				if i >= len(items) {
					return
				}
				if err := do(items[i]); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	if failed == nil {
		failed = ctx.Err()
	}
	return failed
}
