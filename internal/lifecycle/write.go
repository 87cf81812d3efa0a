package lifecycle

import (
	"context"
	"errors"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/anykind/anykind/internal/apply"
	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/registry"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/status"
)

// errSame says that there is nothing to change.
var errSame = errors.New("nothing to change")

// delete deletes the object at a key. It is no error that there is none.
func (l *Lifecycle) delete(ctx context.Context, d *resource.Definition, key string, options *metav1.DeleteOptions) error {
	namespace, name := d.Split(key)
	_, err := l.Registry.Delete(ctx, registry.StorageTarget(d, namespace, name), options, registry.WriteOptions{AsStored: true})
	return ignoreMissing(err)
}

// change writes what edit makes of the object at a key, unless edit reports that
// nothing changed, or the object is not the one with the uid any more.
func (l *Lifecycle) change(ctx context.Context, d *resource.Definition, key, uid, subresource string, edit func(object.Tree) bool) error {
	namespace, name := d.Split(key)
	target := registry.StorageTarget(d, namespace, name)
	target.Subresource = subresource
	_, err := l.Registry.Modify(ctx, target, func(old object.Tree) (object.Tree, error) {
		if object.UID(old) != uid {
			return nil, errSame
		}
		t := object.CloneTree(old)
		if !edit(t) {
			return nil, errSame
		}
		return l.record(target, old, t)
	}, registry.WriteOptions{AsStored: true})
	if errors.Is(err, errSame) {
		return nil
	}
	return ignoreMissing(err)
}

// create makes an object. It is no error that there is one.
func (l *Lifecycle) create(ctx context.Context, d *resource.Definition, namespace string, t object.Tree) error {
	target := registry.StorageTarget(d, namespace, object.Name(t))
	t["apiVersion"], t["kind"] = d.APIVersion(target.Version.Name), d.Kind
	t, err := l.record(target, nil, t)
	if err != nil {
		return err
	}
	for range staleRetries {
		_, err = l.Registry.Create(ctx, target, registry.Given(t), registry.WriteOptions{})
		if !errors.Is(err, registry.ErrStale) {
			break
		}
	}
	if status.Is(err, metav1.StatusReasonAlreadyExists) {
		return nil
	}
	return err
}

// record says in t's managedFields that we made it of old. An object of which
// nobody keeps account, or that is about to go, is left as it is.
func (l *Lifecycle) record(target registry.Target, old, t object.Tree) (object.Tree, error) {
	if old != nil && (object.Metadata(old)["managedFields"] == nil || object.Deleting(t) && len(object.Finalizers(t)) == 0 && target.Subresource == "") {
		return t, nil
	}
	// What is changed as it is stored may be in another version than the target.
	v := target.Version
	for _, other := range target.Definition.Versions {
		if target.Definition.IsAPIVersion(object.APIVersion(t), other.Name) {
			v = other
		}
	}
	return apply.FieldsOf(target.Definition, v, target.Subresource).Update(old, t, manager), nil
}

func ignoreMissing(err error) error {
	if status.Is(err, metav1.StatusReasonNotFound) {
		return nil
	}
	return err
}

// parallel is how many objects of one owner or namespace are written at a time.
const parallel = 8

// each calls do for all items, so many at a time, and returns one of the errors.
func each[T any](ctx context.Context, parallel int, items []T, do func(T) error) error {
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
