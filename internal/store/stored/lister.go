package stored

import (
	"context"
	"encoding/json"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/object/resource"
	"github.com/anykind/anykind/internal/store/kv"
	"github.com/anykind/anykind/internal/store/watchcache"
)

// A Lister reads the objects of a kind from the cache as Go values. Each stored object is decoded
// once. The values are read-only.
type Lister[T any] struct{ lister }

// A lister is a Lister without its type parameter: Go compiles generic code for each type.
type lister struct {
	of         reflect.Type
	cache      *watchcache.Cache
	definition *resource.Definition
	objects    *watchcache.Resource

	mu   sync.Mutex
	made map[string]made // by key
	tidy int             // limit of new values before values of deleted objects are dropped
}

type made struct {
	of    *watchcache.Object
	value any // a pointer
}

// List returns a Lister of a kind in a set.
func List[T any](cache *watchcache.Cache, set *resource.Set, kind schema.GroupResource) *Lister[T] {
	d := set.Lookup(kind.Group, kind.Resource)
	return &Lister[T]{lister{
		of: reflect.TypeFor[T](), cache: cache, definition: d, objects: cache.Resource(d.StoragePrefix), made: map[string]made{},
	}}
}

// Get returns an object, or nil if there is none. An object missing from the cache may just have been
// created through another server, so Get reads the revision of the store before it returns nil.
func (l *Lister[T]) Get(ctx context.Context, namespace, name string) (*T, error) {
	v, err := l.get(ctx, namespace, name)
	value, _ := v.(*T)
	return value, err
}

func (l *lister) get(ctx context.Context, namespace, name string) (any, error) {
	found, err := l.find(ctx, namespace, name)
	if err != nil || found == nil {
		return nil, err
	}
	v, err := l.value(found)
	if err == nil && l.crowded() {
		var snapshot *watchcache.Snapshot
		if snapshot, err = l.objects.Snapshot(ctx, kv.Latest); err == nil {
			l.forget(snapshot)
		}
	}
	return v, err
}

// crowded reports whether there are enough values that some may belong to deleted objects.
func (l *lister) crowded() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.made) > max(l.tidy, 64)
}

// Read returns an object as Get does, without caching its value. It is for kinds with many short-lived
// objects.
func (l *Lister[T]) Read(ctx context.Context, namespace, name string) (*T, error) {
	found, err := l.find(ctx, namespace, name)
	if err != nil || found == nil {
		return nil, err
	}
	v, err := l.read(found)
	value, _ := v.(*T)
	return value, err
}

func (l *lister) find(ctx context.Context, namespace, name string) (*watchcache.Object, error) {
	key := l.definition.Key(namespace, name)
	found, err := l.objects.Get(ctx, key)
	if err == nil && found == nil {
		if _, err = l.cache.Fresh(ctx); err == nil {
			found, err = l.objects.Get(ctx, key)
		}
	}
	return found, err
}

// List returns the objects of a namespace, or of all for "", in the order of their names. Objects that
// cannot be decoded are not among them.
func (l *Lister[T]) List(ctx context.Context, namespace string) (all []*T, err error) {
	err = l.scan(ctx, namespace, func(o *watchcache.Object, v any, err error) error {
		if err == nil {
			all = append(all, v.(*T))
		} else if _, failed := o.JSON(); failed != nil && o.Err() == nil {
			return failed // the value cannot be loaded
		}
		return nil
	})
	return all, err
}

// Any reports whether there is an object in a namespace.
func (l *lister) Any(ctx context.Context, namespace string) (bool, error) {
	if empty, err := l.objects.Empty(ctx); err != nil || empty {
		return false, err
	}
	snapshot, err := l.objects.Snapshot(ctx, kv.Latest)
	if err != nil {
		return false, err
	}
	return snapshot.Len(l.definition.NamespacePrefix(namespace), "") > 0, nil
}

// An Object is a Go value with its stored object.
type Object[T any] struct {
	*watchcache.Object
	Value *T
}

// All returns the objects of a namespace, each with its stored form. Other than List, it fails if one of them cannot be read: a
// caller that enforces all objects must not enforce fewer.
func (l *Lister[T]) All(ctx context.Context, namespace string) (all []Object[T], err error) {
	err = l.scan(ctx, namespace, func(o *watchcache.Object, v any, err error) error {
		if err != nil {
			return unreadable(o, err)
		}
		all = append(all, Object[T]{o, v.(*T)})
		return nil
	})
	return all, err
}

// scan calls f with the objects of a namespace, and with their values or the errors of reading them, until f fails.
func (l *lister) scan(ctx context.Context, namespace string, f func(*watchcache.Object, any, error) error) error {
	snapshot, err := l.objects.Snapshot(ctx, kv.Latest)
	if err != nil {
		return err
	}
	for o := range snapshot.Scan(l.definition.NamespacePrefix(namespace), "") {
		v, err := l.value(o)
		if err := f(o, v, err); err != nil {
			return err
		}
	}
	l.forget(snapshot)
	return nil
}

func (l *lister) value(o *watchcache.Object) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.made[o.Key]; m.of == o {
		return m.value, nil
	}
	v, err := l.read(o)
	if err == nil {
		l.made[o.Key] = made{o, v}
	}
	return v, err
}

func (l *lister) read(o *watchcache.Object) (any, error) {
	data, err := o.JSON()
	if err != nil {
		return nil, err
	}
	v := reflect.New(l.of).Interface()
	if err := json.Unmarshal(data, v); err != nil {
		return nil, err
	}
	return v, nil
}

// forget drops the values of deleted objects, if there are many.
func (l *lister) forget(now *watchcache.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.made) <= max(l.tidy, 64) {
		return
	}
	for key, m := range l.made {
		if now.Get(key) != m.of {
			delete(l.made, key)
		}
	}
	l.tidy = 2 * len(l.made)
}
