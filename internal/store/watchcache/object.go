package watchcache

import (
	"sync/atomic"

	"github.com/anykind/anykind/internal/object"
	"github.com/anykind/anykind/internal/store/kv"
)

// An Object is one stored object. All readers share it, and it is immutable. Its header is in memory. Its
// value may be in the store only, from where Read loads it.
type Object struct {
	Key      string
	Revision int64 // of the write that stored it, served as resourceVersion

	shape   *shape
	content atomic.Pointer[content] // nil while the value is in the store only
	uid     [16]byte
	bytes   uint32      // of the JSON
	pinned  atomic.Bool // the value stays in memory
	evicted uint8       // when the value was, see hot; it needs hot.mu
	marks   mark
	name    uint16 // length of the end of Key that is the name, unless the shape has an odd header
	space   uint16 // length of the part before it that is the namespace
}

// marks are the properties of an object that are one bit each.
type mark uint8

const (
	deleting mark = 1 << iota // has a deletionTimestamp
	held                      // has finalizers
	hasUID                    // in uid
	failed                    // cannot be decoded
	verified                  // failed, as Verify has confirmed
)

// content is the value of an object in memory with all that is derived from it.
type content struct {
	object.Encoded
	err   error
	memos memos
	used  atomic.Bool // since the last look of the eviction

	// These need hot.mu. charged is the part of the budget for the value; 0 if the budget does not count it.
	charged int64
	proven  bool
}

// NewObject returns the object of a value. The value stays in memory. An object that cannot be decoded has an
// error.
func NewObject(key string, value []byte, revision int64) *Object {
	o, c := newObject(nil, key, value, revision)
	o.keep(c)
	return o
}

// Of returns the object of an encoded one.
func Of(key string, e object.Encoded) *Object {
	o := &Object{Key: key, Revision: e.Revision, bytes: uint32(len(e.JSON))}
	c := &content{Encoded: e}
	o.describe(nil, c)
	o.keep(c)
	return o
}

// newObject returns the object of a value, and the value.
func newObject(shapes *shapes, key string, value []byte, revision int64) (*Object, *content) {
	o := &Object{Key: key, Revision: revision, bytes: uint32(len(value))}
	c := newContent(value, revision)
	o.describe(shapes, c)
	return o, c
}

func newContent(value []byte, revision int64) *content {
	c := &content{}
	if c.Encoded, c.err = object.Scan(value, revision); c.err != nil {
		c.Encoded = object.Encoded{JSON: value, Revision: revision}
	}
	return c
}

// describe sets the header.
func (o *Object) describe(shapes *shapes, c *content) {
	e := &c.Encoded
	if e.Deleting {
		o.marks |= deleting
	}
	if e.Held {
		o.marks |= held
	}
	if c.err != nil {
		o.marks |= failed
	}
	odd := odd{}
	if parseUID(e.UID, &o.uid) {
		o.marks |= hasUID
	} else {
		odd.uid = e.UID
	}
	if !o.named(e.Namespace, e.Name) {
		odd.name, odd.namespace = e.Name, e.Namespace
	}
	o.shape = shapes.of(e, odd)
	e.Labels = o.shape.labels
}

// named sets the lengths of the name and the namespace, if the key ends with both.
func (o *Object) named(namespace, name string) bool {
	rest := len(o.Key) - len(name)
	if rest < 1 || len(name) > 1<<16-1 || o.Key[rest:] != name || o.Key[rest-1] != '/' {
		return false
	}
	if namespace != "" {
		from := rest - 1 - len(namespace)
		if from < 1 || len(namespace) > 1<<16-1 || o.Key[from:rest-1] != namespace || o.Key[from-1] != '/' {
			return false
		}
	}
	o.name, o.space = uint16(len(name)), uint16(len(namespace))
	return true
}

// Name returns metadata.name.
func (o *Object) Name() string {
	if o.name == 0 {
		return o.odd().name
	}
	return o.Key[len(o.Key)-int(o.name):]
}

// Namespace returns metadata.namespace, or "".
func (o *Object) Namespace() string {
	if o.name == 0 {
		return o.odd().namespace
	}
	end := len(o.Key) - int(o.name) - 1
	return o.Key[end-int(o.space) : end]
}

// UID returns metadata.uid.
func (o *Object) UID() string {
	if o.marks&hasUID == 0 {
		return o.odd().uid
	}
	return formatUID(&o.uid)
}

// AppendUID appends metadata.uid without an allocation of its own.
func (o *Object) AppendUID(dst []byte) []byte {
	if o.marks&hasUID == 0 {
		return append(dst, o.odd().uid...)
	}
	return appendUID(dst, &o.uid)
}

// Labels returns the labels. The caller must not change them.
func (o *Object) Labels() *object.Labels {
	if o.shape == nil {
		return &none.labels
	}
	return &o.shape.labels
}

// APIVersion returns the stored apiVersion.
func (o *Object) APIVersion() string {
	if o.shape == nil {
		return ""
	}
	return o.shape.kind.apiVersion
}

// Deleting reports whether the object has a deletionTimestamp.
func (o *Object) Deleting() bool { return o.marks&deleting != 0 }

// Held reports whether the object has finalizers.
func (o *Object) Held() bool { return o.marks&held != 0 }

// Err returns the error of decoding the stored value. An object with an error has no header.
func (o *Object) Err() error {
	if o.marks&failed == 0 {
		return nil
	}
	return o.content.Load().err
}

// isUndecodable reports whether an object has an error.
func isUndecodable(o *Object) bool { return o != nil && o.marks&failed != 0 }

// isDoubtful reports whether an object has an error that was not verified.
func isDoubtful(o *Object) bool { return isUndecodable(o) && o.marks&verified == 0 }

// size returns the size of the JSON; 0 for nil.
func (o *Object) size() int64 {
	if o == nil {
		return 0
	}
	return int64(o.bytes)
}

// Memo returns the result of compute for o and a key, and keeps it with the value of the object until that
// leaves memory or a request needs a newer one. Concurrent callers wait for one computation and share its
// error; errors are not kept, and the next caller computes again. So compute must not depend on the
// caller. A key is comparable. An object with many keys drops old ones.
func (o *Object) Memo(key any, m Validity, compute func() ([]byte, error)) ([]byte, error) {
	c, err := o.get()
	if err != nil {
		return nil, err
	}
	value, fresh, err := c.memos.get(key, m, compute)
	if fresh {
		o.derived(c, value)
	}
	return value, err
}

// Claim is for batches of computations. If the result of the key is neither computed nor in progress,
// the caller must compute it and must call publish in any case. All other callers wait until then. So a
// claimant must not wait for others before it has published all its claims.
func (o *Object) Claim(key any, m Validity) (publish func(value []byte, err error), ok bool) {
	c, err := o.get()
	if err != nil {
		return nil, false // the later Memo reports the error
	}
	share, ok := c.memos.claim(key, m)
	if !ok {
		return nil, false
	}
	return func(value []byte, err error) {
		share(value, err)
		o.derived(c, value)
	}, true
}

// An Event is one write to an object. All watchers share it.
type Event struct {
	Object *Object // nil when the object was deleted
	// Prev is the object before, nil for a creation. For a deletion, clients see a copy of
	// Prev with the event's Revision.
	Prev     *Object
	Revision int64

	memos memos
}

// Key returns the key of the object.
func (e *Event) Key() string {
	if e.Object != nil {
		return e.Object.Key
	}
	return e.Prev.Key
}

// Memo is Object.Memo for results derived from an event. They are kept while the event is recent.
func (e *Event) Memo(key any, m Validity, compute func() ([]byte, error)) ([]byte, error) {
	value, _, err := e.memos.get(key, m, compute)
	return value, err
}

// size returns about the number of bytes that the event alone keeps in memory: its new object is
// either current or the Prev of another event.
func (e *Event) size() int64 {
	const fixed = 400
	return fixed + e.Prev.size()
}

// held returns about the number of bytes that a holder of the event keeps in memory.
func (e *Event) held() int { return int(e.Object.size() + e.Prev.size()) }

// pastEvent converts an event of the backend's history. If the backend has no previous value, Prev
// still marks that there was one.
func pastEvent(e kv.Event) *Event {
	event := &Event{Revision: e.Revision}
	if e.Value != nil {
		event.Object = NewObject(e.Key, e.Value, e.Revision)
	}
	if e.Value == nil || e.PrevRevision != kv.Absent {
		event.Prev = NewObject(e.Key, e.Prev, e.PrevRevision)
	}
	return event
}
