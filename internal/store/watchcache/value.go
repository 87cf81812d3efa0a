package watchcache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// Values of a cache over a kv.Loader are in memory as long as they are hot, see hot. All others are loaded
// again when they are read.
//
// A value that is present in the store can be loaded. When the feed reports that it was replaced, the event has
// it, and the Object keeps it from then on: snapshots, events and readers that hold the Object need no record
// that a compaction may remove. A reader between the compaction and the event waits for the event. An Object of a
// resource that was forgotten gets no event: if its record is gone, Read returns *kv.CompactedError.

// Read returns the object with its value. The caller must not change it. A value that is not in memory is loaded; concurrent readers share one load. The error of an object that cannot be decoded is that of Err, or new:
// its key for decryption may be lost meanwhile.
// Errors: *kv.CompactedError, ErrStopped, those of the backend.
func (o *Object) Read() (*object.Encoded, error) {
	c, err := o.get()
	if err == nil {
		err = c.err
	}
	if err != nil {
		return nil, err
	}
	return &c.Encoded, nil
}

// JSON returns the value, as Read does.
func (o *Object) JSON() ([]byte, error) {
	e, err := o.Read()
	if err != nil {
		return nil, err
	}
	return e.JSON, nil
}

// Raw is JSON for callers that need no header: it also returns the value of an object with an error.
func (o *Object) Raw() ([]byte, error) {
	c, err := o.get()
	if err != nil {
		return nil, err
	}
	return c.JSON, nil
}

// get returns the value; it may have an error.
func (o *Object) get() (*content, error) {
	if c := o.content.Load(); c != nil {
		if !c.used.Load() {
			c.used.Store(true)
		}
		return c, nil
	}
	if o.shape == nil || o.shape.kind.cache == nil {
		return nil, fmt.Errorf("the object %s has no value", o.Key)
	}
	return o.shape.kind.cache.loading.do(o)
}

// keep makes the object keep a value from now on, unless it has it already.
func (o *Object) keep(c *content) {
	o.pinned.Store(true)
	o.content.CompareAndSwap(nil, c)
}

// replaced makes an object of the cache keep its value. The store may remove its record from now on.
func (o *Object) replaced(c *Cache, value []byte) {
	if c.loader == nil || o.shape.kind.cache != c { // it has its value, or the cache that it is from keeps the state
		return
	}
	o.pinned.Store(true)
	if o.content.Load() == nil && value != nil {
		o.content.CompareAndSwap(nil, o.contentOf(value))
	}
}

// derived accounts for a result that is kept with a value.
func (o *Object) derived(c *content, result []byte) {
	shared := len(result) > 0 && len(result) == len(c.JSON) && &result[0] == &c.JSON[0]
	if of := o.shape.kind.cache; of != nil && !shared {
		of.hot.grow(c, int64(len(result)))
	}
}

// evict drops the value from memory, unless it must stay.
func (o *Object) evict(c *content) {
	if !o.content.CompareAndSwap(c, nil) {
		return
	}
	// replaced may have seen c.
	if o.pinned.Load() {
		o.content.CompareAndSwap(nil, c)
	}
}

func (o *Object) contentOf(value []byte) *content {
	c := newContent(value, o.Revision)
	c.Labels = o.shape.labels
	return c
}

// loading has the loads under way of a cache.
type loading struct {
	mu  sync.Mutex
	all map[*Object]*loadingValue
}

type loadingValue struct {
	done    chan struct{}
	content *content
	err     error
}

// do loads the value of an object, or waits for another caller that does.
func (l *loading) do(o *Object) (*content, error) {
	l.mu.Lock()
	v := l.all[o]
	if v != nil {
		l.mu.Unlock()
		<-v.done
		return v.content, v.err
	}
	v = &loadingValue{done: make(chan struct{}), err: errors.New("the load panicked")}
	if l.all == nil {
		l.all = map[*Object]*loadingValue{}
	}
	l.all[o] = v
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		delete(l.all, o)
		l.mu.Unlock()
		close(v.done)
	}()
	v.content, v.err = o.shape.kind.cache.load(o)
	return v.content, v.err
}

// load loads the value of an object. It has no context: other readers wait for it.
func (c *Cache) load(o *Object) (*content, error) {
	ctx := context.Background()
	value, err := c.loader.Load(ctx, o.Key, o.Revision)
	var compacted *kv.CompactedError
	if errors.As(err, &compacted) {
		// It was replaced. The feed has the value, or gets it.
		if revision, failed := c.backend.Revision(ctx); failed != nil {
			err = failed
		} else if failed := c.Wait(ctx, revision); failed != nil {
			err = failed
		}
	}
	if known := o.content.Load(); known != nil {
		return known, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.Key, err)
	}
	v := o.contentOf(value)
	if v.err != nil { // the next reader tries again
		return nil, v.err
	}
	if !o.content.CompareAndSwap(nil, v) {
		return v, nil
	}
	c.hot.admit(o, v)
	return v, nil
}
