package stored

import (
	"context"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/anykind/anykind/internal/kv"
	"github.com/anykind/anykind/internal/resource"
	"github.com/anykind/anykind/internal/watchcache"
)

// A Lister reads the objects of a kind as Go values, as the cache has them. A value is made once
// for each object, and is not to be changed.
type Lister[T any] struct {
	cache      *watchcache.Cache
	definition *resource.Definition

	mu   sync.Mutex
	made map[string]made[T] // by key
	many int                // how much of it is looked through for what is gone
}

type made[T any] struct {
	of    *watchcache.Object
	value *T
}

// List returns a Lister of a kind in a set.
func List[T any](cache *watchcache.Cache, set *resource.Set, kind schema.GroupResource) *Lister[T] {
	return &Lister[T]{cache: cache, definition: set.Lookup(kind.Group, kind.Resource), made: map[string]made[T]{}}
}

// Get returns an object, or nil if there is none. One that this server has not heard of may have
// been created a moment ago through another, so the store is asked before the answer is nil.
func (l *Lister[T]) Get(ctx context.Context, namespace, name string) (*T, error) {
	key := l.definition.Key(namespace, name)
	objects := l.cache.Resource(l.definition.StoragePrefix)
	found, err := objects.Get(ctx, key)
	if err == nil && found == nil {
		if _, err = l.cache.Fresh(ctx); err == nil {
			found, err = objects.Get(ctx, key)
		}
	}
	if err != nil || found == nil {
		return nil, err
	}
	v, err := l.value(found)
	l.mu.Lock()
	many := len(l.made) > 2*l.many+8
	l.mu.Unlock()
	if many {
		if snapshot, err := objects.Snapshot(ctx, kv.Latest); err == nil {
			l.forget(snapshot)
		}
	}
	return v, err
}

// List returns the objects of a namespace, or of all for "", in the order of their names. What
// cannot be read is not among them.
func (l *Lister[T]) List(ctx context.Context, namespace string) ([]*T, error) {
	snapshot, err := l.cache.Resource(l.definition.StoragePrefix).Snapshot(ctx, kv.Latest)
	if err != nil {
		return nil, err
	}
	var all []*T
	for o := range snapshot.Scan(l.definition.NamespacePrefix(namespace), "") {
		if v, err := l.value(o); err == nil {
			all = append(all, v)
		}
	}
	l.forget(snapshot)
	return all, nil
}

func (l *Lister[T]) value(o *watchcache.Object) (*T, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.made[o.Key]; m.of == o {
		return m.value, nil
	}
	if o.Err != nil {
		return nil, o.Err
	}
	v := new(T)
	if err := json.Unmarshal(o.JSON, v); err != nil {
		return nil, err
	}
	l.made[o.Key] = made[T]{o, v}
	return v, nil
}

// forget drops the values of objects that are gone, once they are the most.
func (l *Lister[T]) forget(now *watchcache.Snapshot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.many = now.Len("", "")
	if len(l.made) <= 2*l.many+8 {
		return
	}
	for key, m := range l.made {
		if now.Get(key) != m.of {
			delete(l.made, key)
		}
	}
}
